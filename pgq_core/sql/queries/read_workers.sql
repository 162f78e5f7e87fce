-- Live workers first, then those that ended lately. `is_stale`: registered as live, but its last beat is too old.
-- `loops` is as old as the last beat, whose age stands beside it: both by the database's clock.
SELECT id, host, pid, pool, supervisor_id, queues, job_types, concurrency, state, wanted, started_at, heartbeat_at, stopped_at,
       exit_code, exit_signal, exit_reason, running, finished, failed, late_writes, cpu_percent::double precision, rss_bytes,
       stopped_at IS NULL AND heartbeat_at < now() - %(stale_limit)s::interval AS is_stale,
       version, loops,
       extract(epoch FROM now() - heartbeat_at)::double precision AS beat_age,
       extract(epoch FROM %(stale_limit)s::interval)::double precision AS beat_limit
  FROM {schema}.workers
 WHERE stopped_at IS NULL
    OR stopped_at > now() - %(ended_within)s::interval
 ORDER BY stopped_at IS NOT NULL, host, pool NULLS LAST, stopped_at DESC NULLS FIRST, started_at, id
 LIMIT %(limit)s
