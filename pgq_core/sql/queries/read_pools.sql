-- Pools and supervisors side by side: a host may have either without the other. `alive` counts whoever started the worker.
SELECT host, p.name, p.queues, p.concurrency, p.wanted, p.minimum, p.maximum, p.state, p.state_detail, p.retry_at, p.restarts,
       coalesce(w.alive, 0) AS alive, coalesce(w.draining, 0) AS draining,
       s.supervisor_id, s.pid, s.pools, s.started_at, s.heartbeat_at, s.stopping,
       s.heartbeat_at < now() - %(stale_limit)s::interval AS supervisor_is_stale, s.loops AS supervisor_loops,
       extract(epoch FROM now() - s.heartbeat_at)::double precision AS beat_age,
       extract(epoch FROM %(stale_limit)s::interval)::double precision AS beat_limit
  FROM {schema}.worker_pools p
  FULL JOIN {schema}.supervisors s USING (host)
  LEFT JOIN LATERAL (
    SELECT count(*) AS alive, count(*) FILTER (WHERE state = 'draining' OR wanted IN ('drain', 'stop')) AS draining
      FROM {schema}.workers
     WHERE workers.host = p.host
       AND workers.pool = p.name
       AND stopped_at IS NULL
       AND heartbeat_at >= now() - %(stale_limit)s::interval
  ) w ON true
 ORDER BY host, p.name
 LIMIT %(limit)s
