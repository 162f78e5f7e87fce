-- What runs now, longest first. An orphan is held by a worker that gives no sign of life and by no lease.
SELECT j.id AS job_id, j.queue, j.job_type, j.locked_by AS worker_id, j.attempts + 1 AS attempt, j.max_attempts, j.locked_at,
       j.cancel_requested,
       CASE WHEN j.lease_until IS NOT NULL THEN j.lease_until < now()
            ELSE NOT EXISTS (SELECT
                               FROM {schema}.workers w
                              WHERE w.id = j.locked_by
                                AND w.stopped_at IS NULL
                                AND w.heartbeat_at >= now() - %(stale_limit)s::interval) END AS is_orphan
  FROM {schema}.jobs j
 WHERE j.locked_by IS NOT NULL
   AND (%(worker_id)s::text IS NULL OR j.locked_by = %(worker_id)s)
   AND (%(queue)s::text IS NULL OR j.queue = %(queue)s)
   AND (%(job_type)s::text IS NULL OR j.job_type = %(job_type)s)
 ORDER BY j.locked_at, j.id
 LIMIT %(limit)s
