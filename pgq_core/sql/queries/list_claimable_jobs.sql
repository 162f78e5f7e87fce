-- The next due jobs of some queues, locked, for a claim row by row: the claim of some at once was refused. Suspects only, or none of them.
-- Not those that were refused a moment ago. A pause holds here too.
SELECT ready.id
  FROM unnest(%(queues)s::text[]) AS served(queue)
 CROSS JOIN LATERAL (
       SELECT id
         FROM {schema}.jobs
        WHERE queue = served.queue
          AND status = 'pending'
          AND not_before <= now()
          AND suspect = %(suspect)s
          AND job_type = ANY (%(job_types)s::text[])
          AND id <> ALL (%(except_jobs)s::bigint[])
        ORDER BY (-priority), not_before, id
        LIMIT %(limit)s
          FOR UPDATE SKIP LOCKED) ready
 WHERE NOT EXISTS (SELECT FROM {schema}.queues q WHERE q.name = served.queue AND q.paused)
 LIMIT %(limit)s
