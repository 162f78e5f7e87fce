-- Scheduled jobs of some queues that are due, locked, to be made pending row by row: a promotion of some at once was refused.
-- Not those that were refused a moment ago.
SELECT due.id
  FROM unnest(%(queues)s::text[]) AS served(queue)
 CROSS JOIN LATERAL (
       SELECT id
         FROM {schema}.jobs
        WHERE queue = served.queue
          AND status = 'scheduled'
          AND not_before <= now()
          AND id <> ALL (%(except_jobs)s::bigint[])
        ORDER BY not_before, id
        LIMIT %(limit)s
          FOR UPDATE SKIP LOCKED) due
 LIMIT %(limit)s
