-- Dead letters as one JSON document each, payloads to the digit: what import_dead_letters takes.
SELECT jsonb_build_object(
           'dead_letter_id', id, 'original_job_id', original_job_id, 'queue', queue, 'payload', payload, 'last_error', last_error,
           'error_class', error_class, 'traceback', traceback, 'reason', reason, 'fingerprint', fingerprint, 'attempts', attempts,
           'max_attempts', max_attempts, 'priority', priority, 'timeout_seconds', extract(epoch FROM timeout),
           'idempotency_key', idempotency_key, 'created_at', created_at, 'died_at', died_at, 'last_worker', last_worker,
           'attempt_log', attempt_log, 'origin_job_id', origin_job_id, 'note', note, 'resolution', resolution)::text
  FROM {schema}.dead_letter_jobs
 WHERE id = ANY(%(ids)s::bigint[])
 ORDER BY id
