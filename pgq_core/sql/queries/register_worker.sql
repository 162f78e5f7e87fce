-- One row per process start, before the process is started. The statistics slot is the one that fewest live workers use.
INSERT INTO {schema}.workers (id, host, pool, supervisor_id, queues, concurrency, version, slot)
SELECT %(worker_id)s, %(host)s, %(pool)s, %(supervisor_id)s, %(queues)s, %(concurrency)s, %(version)s,
       (SELECT n::smallint
          FROM generate_series(0, 15) n
          LEFT JOIN {schema}.workers w ON w.slot = n AND w.stopped_at IS NULL
         GROUP BY n
         ORDER BY count(w.id), n
         LIMIT 1)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = now()
RETURNING slot::int
