-- Sessions that hold a lock on one of our tables right now, oldest transaction first.
SELECT DISTINCT a.pid, a.application_name, a.state, a.xact_start
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE n.nspname = %(schema)s
   AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND a.pid <> pg_backend_pid()
 ORDER BY a.xact_start, a.pid
 LIMIT 5
