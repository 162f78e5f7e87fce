-- What a check-up looks at beside the schema's version: clock, backend, rights, dead rows, days with a partition, and who is at work.
SELECT extract(epoch FROM clock_timestamp())::double precision AS clock,
       pg_backend_pid() AS backend_pid,
       current_setting('server_version_num')::int AS server_version,
       current_setting('max_connections')::int AS max_connections,
       (SELECT count(*)::int FROM pg_stat_activity) AS connections,
       ARRAY(SELECT name
               FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS t(name)
              WHERE current_setting(name) = 'off') AS forgetful_settings,
       ARRAY(SELECT format('%%s of %%s', tgname, tgrelid::regclass)
               FROM pg_trigger
               JOIN pg_proc p ON p.oid = tgfoid AND p.pronamespace = to_regnamespace(quote_ident(%(schema_name)s))
              WHERE tgrelid IN (to_regclass(format('%%I.jobs', %(schema_name)s::text)), to_regclass(format('%%I.dead_letter_jobs', %(schema_name)s::text)))
                AND NOT tgisinternal
                AND (tgenabled = 'D' OR (tgenabled = 'O' AND current_setting('session_replication_role') = 'replica'))
              ORDER BY tgname) AS silent_triggers,
       ARRAY(SELECT format('%%s %%s', privilege, relation)
               FROM unnest(ARRAY['jobs', 'dead_letter_jobs', 'job_runs', 'job_keys', 'job_stats', 'workers', 'queues', 'operations'])
                    AS t(relation),
                    unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p(privilege)
              WHERE NOT has_table_privilege(format('%%I.%%I', %(schema_name)s::text, relation), privilege)
                AND NOT (relation IN ('job_runs', 'operations') AND privilege IN ('UPDATE', 'DELETE'))
              ORDER BY relation, privilege) AS missing_rights,
       coalesce(t.n_live_tup, 0) AS live_rows,
       coalesce(t.n_dead_tup, 0) AS dead_rows,
       greatest(t.last_autovacuum, t.last_vacuum) AS vacuumed_at,
       (SELECT count(*)::int
          FROM pg_inherits i
         WHERE i.inhparent = to_regclass(format('%%I.job_runs', %(schema_name)s::text))
           AND NOT i.inhdetachpending
           AND (SELECT relname FROM pg_class WHERE oid = i.inhrelid) >= 'job_runs_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))
           AS days_ahead,
       (SELECT count(*)::int
          FROM {schema}.workers
         WHERE stopped_at IS NULL
           AND heartbeat_at >= now() - %(stale_limit)s::interval) AS live_workers
  FROM (SELECT) one_row
  LEFT JOIN pg_stat_user_tables t ON t.schemaname = %(schema_name)s AND t.relname = 'jobs'
