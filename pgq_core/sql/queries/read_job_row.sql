-- One live job with its payload, cut to `limit` characters; `payload_size` is the whole size. The last columns say why it does not run.
SELECT j.id, j.queue, j.job_type, j.status, j.priority, j.attempts, j.max_attempts, j.not_before, j.created_at, j.locked_by,
       j.idempotency_key, j.last_error, j.waiting_for,
       j.locked_at, j.lease_until, j.timeout, j.losses, j.suspect, j.cancel_requested, j.origin_job_id, j.replayed_from,
       left(j.payload::text, %(limit)s) AS payload_text, octet_length(j.payload::text) AS payload_size,
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
                          AND j.job_type = ANY(w.job_types)) AS no_worker_knows_type,
       j.status = 'pending'
       AND NOT EXISTS (SELECT
                         FROM {schema}.workers w
                        WHERE w.stopped_at IS NULL
                          AND w.heartbeat_at >= now() - %(stale_limit)s::interval
                          AND j.queue = ANY(w.queues)) AS no_worker_serves_queue,
       j.status = 'pending'
       AND EXISTS (SELECT FROM {schema}.queues q WHERE q.name = j.queue AND q.paused) AS is_queue_paused
  FROM {schema}.jobs j
 WHERE j.id = %(job_id)s
