-- Every measurement starts from a fresh copy of a migrated template, so that none inherits bloat.
CREATE DATABASE {database} TEMPLATE {template}
