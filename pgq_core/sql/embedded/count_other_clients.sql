-- How many clients besides this connection use the server; its own background processes do not count.
SELECT count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend'
  AND pid <> pg_backend_pid()
