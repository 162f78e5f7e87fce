-- One dead letter with all that a triage needs. Payloads are cut to `limit` characters here, so that no megabyte travels;
-- `follow_up` is where the replayed job stands now.
SELECT d.id, d.original_job_id, d.queue, d.job_type, d.reason, d.error_class, d.last_error, d.attempts, d.max_attempts, d.fingerprint,
       d.last_worker, d.died_at, d.resolution, d.resolved_at, d.resolved_by, d.replayed_job_id, d.replayed_from,
       d.priority, d.idempotency_key, d.created_at, d.traceback,
       left(d.payload::text, %(limit)s) AS payload_text, octet_length(d.payload::text) AS payload_size,
       left(d.original_payload::text, %(limit)s) AS original_payload_text,
       d.attempt_log, d.note,
       coalesce((SELECT j.status FROM {schema}.jobs j WHERE j.id = d.replayed_job_id),
                (SELECT r.outcome FROM {schema}.job_runs r WHERE r.job_id = d.replayed_job_id ORDER BY r.started_at DESC, r.id DESC LIMIT 1),
                (SELECT 'dead' FROM {schema}.dead_letter_jobs f WHERE f.original_job_id = d.replayed_job_id LIMIT 1)) AS follow_up
  FROM {schema}.dead_letter_jobs d
 WHERE d.id = %(dead_letter_id)s
