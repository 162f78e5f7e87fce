-- One migrator of a schema at a time; the key is that of try_migration_lock.
SELECT pg_advisory_xact_lock(hashtextextended('pgq migrate ' || {schema_name}, 0))
