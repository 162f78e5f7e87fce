-- Live jobs, in the order in which they were enqueued.
SELECT id, queue, job_type AS type, coalesce(payload -> 'data', '{{}}') AS data, priority, status, attempts, max_attempts, not_before, created_at,
       idempotency_key, timeout, last_error, trace_context, origin_job_id, replayed_from
  FROM {schema}.jobs
 WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
   AND (%(queue)s::text IS NULL OR queue = %(queue)s)
 ORDER BY id
 LIMIT %(limit)s
