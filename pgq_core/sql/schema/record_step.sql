-- Comes first in its transaction: a step that was applied before stops here.
INSERT INTO {schema}.schema_migrations (version, name, checksum, compatible_from)
VALUES ({version}, {name}, {checksum}, {compatible_from})
