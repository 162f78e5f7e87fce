-- The dead letters that one job left (more than one only after an undone replay), newest first.
SELECT id, original_job_id, queue, job_type, reason, error_class, left(last_error, 500) AS last_error, attempts, max_attempts,
       fingerprint, last_worker, died_at, resolution, resolved_at, resolved_by, replayed_job_id, replayed_from
  FROM {schema}.dead_letter_jobs
 WHERE original_job_id = %(job_id)s
 ORDER BY id DESC
 LIMIT 100
