-- What a bare "jobs" means in a new session of this database.
SELECT current_database()::text AS database,
       current_setting('search_path') AS search_path,
       (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = to_regclass('jobs')) AS schema_of_jobs,
       to_regclass('jobs') IS NOT NULL AND to_regclass('jobs') = to_regclass(format('%%I.jobs', %(schema)s::text)) AS is_ours
