-- Workers whose keeper has not beaten for the stale limit. From here on their beats are refused, which tells them.
-- Not while the server itself has not been up that long: after an outage the healthy ones get time to beat.
-- (A start that lies ahead: the server's clock was set back since.)
WITH silent AS MATERIALIZED (
    SELECT id
      FROM {schema}.workers
     WHERE stopped_at IS NULL
       AND heartbeat_at < now() - %(stale_limit)s::interval
       AND pg_postmaster_start_time() NOT BETWEEN now() - %(stale_limit)s::interval AND now()
     ORDER BY id
     LIMIT 1000
       FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.workers w
   SET state = 'lost',
       stopped_at = now(),
       exit_reason = 'no heartbeat since ' || to_char(w.heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC',
       running = 0
 WHERE w.id = ANY (ARRAY(SELECT id FROM silent))
   AND w.stopped_at IS NULL
RETURNING w.id
