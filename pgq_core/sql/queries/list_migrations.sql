-- The steps that this schema has seen, oldest first.
SELECT version, name, checksum, compatible_from, applied_at
  FROM {schema}.schema_migrations
 ORDER BY version
