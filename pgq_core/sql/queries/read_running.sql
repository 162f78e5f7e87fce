-- The running jobs in two numbers: how many have no living owner (their lease is past, or their worker has ended, fell silent or has no
-- row), and for how long the oldest of them all has been running.
SELECT count(*) FILTER (WHERE CASE
                                  WHEN j.lease_until IS NOT NULL THEN j.lease_until < now()
                                  ELSE w.id IS NULL OR w.stopped_at IS NOT NULL OR w.heartbeat_at < now() - %(stale_limit)s::interval
                              END)::int AS without_owner,
       coalesce(extract(epoch FROM now() - min(j.locked_at)), 0)::double precision AS oldest_age
  FROM {schema}.jobs j
  LEFT JOIN {schema}.workers w ON w.id = j.locked_by
 WHERE j.locked_by IS NOT NULL
