-- Partitions of job_runs whose DETACH CONCURRENTLY was broken off: they take no rows, and are not made anew as long as it is not ended.
SELECT c.relname
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  JOIN pg_class parent ON parent.oid = i.inhparent AND parent.relname = 'job_runs'
  JOIN pg_namespace n ON n.oid = parent.relnamespace AND n.nspname = %(schema)s
 WHERE i.inhdetachpending
 ORDER BY c.relname
