-- The server as the header shows it: one row, no table that grows.
-- The holder is the oldest transaction (open, or prepared and forgotten) that keeps vacuum from removing dead rows, once it is over a minute old.
SELECT now() AS taken_at,
       current_setting('server_version') AS version,
       current_database()::text AS database,
       current_user::text AS "user",
       pg_is_in_recovery() OR EXISTS (SELECT
                                        FROM pg_settings
                                       WHERE name = 'default_transaction_read_only'
                                         AND setting = 'on'
                                         AND source <> 'client') AS is_read_only,
       current_setting('synchronous_commit') <> 'off' AS waits_for_disk,
       CASE WHEN has_sequence_privilege(ids.sequence, 'USAGE, SELECT') THEN pg_sequence_last_value(ids.sequence) END AS inserted_total,
       holder.age AS holder_age,
       holder.name AS holder
  FROM (SELECT pg_get_serial_sequence(%(jobs)s, 'id')::regclass AS sequence) ids
  LEFT JOIN LATERAL (
    SELECT extract(epoch FROM now() - since)::double precision AS age, name
      FROM (SELECT xact_start AS since,
                   format('pid %%s %%s %%s (%%s)', pid, usename, coalesce(nullif(application_name, ''), backend_type), state) AS name
              FROM pg_stat_activity
             WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
               AND datname = current_database()
               AND pid <> pg_backend_pid()
            UNION ALL
            SELECT prepared, format('prepared transaction %%s of %%s', gid, owner)
              FROM pg_prepared_xacts
             WHERE database = current_database()) holders
     WHERE since < now() - interval '1 minute'
     ORDER BY since
     LIMIT 1
  ) holder ON true
