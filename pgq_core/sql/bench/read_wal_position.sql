SELECT pg_current_wal_insert_lsn()::text AS position, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::double precision AS bytes
