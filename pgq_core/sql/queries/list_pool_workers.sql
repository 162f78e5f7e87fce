-- The live workers of a host's pools, whoever started them. A row that nobody beats for any more is no live worker.
SELECT id, pool, supervisor_id, state, wanted, running
  FROM {schema}.workers
 WHERE host = %(host)s
   AND pool IS NOT NULL
   AND stopped_at IS NULL
   AND heartbeat_at > now() - %(stale_limit)s::interval
 ORDER BY pool, id
 LIMIT 5000
