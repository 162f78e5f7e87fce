-- Advisory locks are taken for a moment, by migrations and partitions.
SELECT l.pid, l.objid
  FROM pg_locks l
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE l.locktype = 'advisory'
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND a.xact_start < clock_timestamp() - interval '1 second'
