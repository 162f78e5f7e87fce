-- All that is known of one job, in one snapshot: its live row, its last dead letter, its final run (or the last one so far),
-- its latest runs (oldest first).
SELECT j.status, coalesce(j.queue, d.queue, f.queue) AS queue, coalesce(j.job_type, d.job_type, f.job_type) AS job_type,
       coalesce(j.payload, d.payload) AS payload, coalesce(j.priority, d.priority, f.priority) AS priority,
       coalesce(j.attempts, d.attempts, f.attempt) AS attempts, coalesce(j.max_attempts, d.max_attempts) AS max_attempts,
       coalesce(j.not_before, f.due_at) AS not_before, coalesce(j.created_at, d.created_at, f.enqueued_at) AS created_at,
       coalesce(j.idempotency_key, d.idempotency_key) AS idempotency_key, j.locked_by, j.locked_at, coalesce(j.cancel_requested, false) AS cancel_requested,
       coalesce(j.last_error, d.last_error, f.error) AS last_error, coalesce(j.replayed_from, d.replayed_from, f.replayed_from) AS replayed_from,
       f.outcome, f.result, f.finished_at,
       d.id AS dead_letter_id, d.reason, d.died_at, d.resolution, d.resolved_at, d.resolved_by, d.replayed_job_id,
       coalesce(r.runs, '[]') AS runs
  FROM (SELECT %(job_id)s::bigint AS id) wanted
  LEFT JOIN {schema}.jobs j ON j.id = wanted.id
  LEFT JOIN LATERAL (SELECT *
                       FROM {schema}.dead_letter_jobs
                      WHERE original_job_id = wanted.id
                      ORDER BY id DESC
                      LIMIT 1) d ON true
  LEFT JOIN LATERAL (SELECT *
                       FROM {schema}.job_runs
                      WHERE job_id = wanted.id
                      ORDER BY outcome IN ('succeeded', 'cancelled', 'discarded', 'expired', 'dead') DESC, started_at DESC, id DESC
                      LIMIT 1) f ON true
  LEFT JOIN LATERAL (SELECT jsonb_agg(jsonb_build_object('id', id, 'attempt', attempt, 'outcome', outcome, 'worker_id', worker_id,
                                                         'started_at', started_at, 'finished_at', finished_at,
                                                         'error', error, 'error_class', error_class) ORDER BY started_at, id) AS runs
                       FROM (SELECT *
                               FROM {schema}.job_runs
                              WHERE job_id = wanted.id
                              ORDER BY started_at DESC, id DESC
                              LIMIT %(run_limit)s) latest) r ON true
 WHERE j.id IS NOT NULL
    OR d.id IS NOT NULL
    OR r.runs IS NOT NULL
