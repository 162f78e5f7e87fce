-- One run with all that was written down about it. Its result is cut; `result_size` is its whole size.
SELECT id, job_id, worker_id, queue, job_type, attempt, outcome, started_at, finished_at, error, error_class,
       due_at, enqueued_at, replayed_from, traceback, left(result::text, %(limit)s) AS result_text,
       coalesce(octet_length(result::text), 0) AS result_size
  FROM {schema}.job_runs
 WHERE id = %(run_id)s
 ORDER BY started_at DESC
 LIMIT 1
