-- Queues that somebody set up: served, paused or limited, in a pool, or the default of a type. Small tables only.
SELECT name
  FROM (SELECT name FROM {schema}.queues WHERE paused OR audit <> 'all'
        UNION SELECT unnest(queues) FROM {schema}.workers WHERE stopped_at IS NULL
        UNION SELECT unnest(queues) FROM {schema}.worker_pools
        UNION SELECT queue FROM {schema}.job_types WHERE queue IS NOT NULL) known
 ORDER BY name
 LIMIT %(most)s
