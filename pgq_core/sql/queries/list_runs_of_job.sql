-- The runs of one job, newest first.
SELECT id, job_id, worker_id, queue, job_type, attempt, outcome, started_at, finished_at, left(error, 500) AS error, error_class,
       due_at, enqueued_at, replayed_from
  FROM {schema}.job_runs
 WHERE job_id = %(job_id)s
 ORDER BY started_at DESC, id DESC
 LIMIT %(limit)s
