-- No session of ours stands in an open transaction without doing anything.
SELECT pid, application_name, state
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND pid <> pg_backend_pid()
   AND application_name LIKE 'pgq%%'
   AND state LIKE 'idle in transaction%%'
   AND state_change < clock_timestamp() - interval '1 second'
