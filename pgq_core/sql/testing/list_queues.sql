-- The queues that hold live jobs.
SELECT DISTINCT queue
  FROM {schema}.jobs
 ORDER BY queue
 LIMIT %(limit)s
