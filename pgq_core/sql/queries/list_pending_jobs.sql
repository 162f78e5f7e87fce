-- Pending jobs in the order of claims, queue by queue, from the place that `after_*` names (all NULL: from the front).
-- Looks at no more than `reach` rows.
SELECT j.id, j.queue, j.job_type, j.status, j.priority, j.attempts, j.max_attempts, j.not_before, j.created_at, j.locked_by,
       j.idempotency_key, left(j.last_error, 300) AS last_error, j.waiting_for,
       j.status = 'pending'
       AND EXISTS (SELECT
                     FROM {schema}.workers w
                    WHERE w.stopped_at IS NULL
                      AND w.heartbeat_at >= now() - %(stale_limit)s::interval
                      AND w.state <> 'starting'
                      AND j.queue = ANY(w.queues))
       AND NOT EXISTS (SELECT
                         FROM {schema}.workers w
                        WHERE w.stopped_at IS NULL
                          AND w.heartbeat_at >= now() - %(stale_limit)s::interval
                          AND j.queue = ANY(w.queues)
                          AND j.job_type = ANY(w.job_types)) AS no_worker_knows_type
  FROM (SELECT id, queue, job_type, status, priority, attempts, max_attempts, not_before, created_at, locked_by, idempotency_key, last_error,
               waiting_for, (-priority) AS claim_order
          FROM {schema}.jobs
         WHERE status = 'pending'
           AND (%(queue)s::text IS NULL OR queue = %(queue)s)
           AND (%(after_queue)s::text IS NULL
                OR (queue, (-priority), not_before, id) > (%(after_queue)s, -%(after_priority)s::int, %(after_not_before)s::timestamptz, %(after_id)s::bigint))
         ORDER BY queue, (-priority), not_before, id
         LIMIT %(reach)s) j
 WHERE (%(job_type)s::text IS NULL OR j.job_type = %(job_type)s)
 ORDER BY j.queue, j.claim_order, j.not_before, j.id
 LIMIT %(limit)s
