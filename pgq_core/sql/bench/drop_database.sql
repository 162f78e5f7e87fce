-- The benchmark's own database, whoever is still connected.
DROP DATABASE IF EXISTS {database} WITH (FORCE)
