-- Closed runs below an id, newest first. Looks at no more than `reach` rows, so that a filter that matches nothing cannot scan the table.
SELECT id, job_id, worker_id, queue, job_type, attempt, outcome, started_at, finished_at, left(error, 500) AS error, error_class,
       due_at, enqueued_at, replayed_from
  FROM (SELECT id, job_id, worker_id, queue, job_type, attempt, outcome, started_at, finished_at, error, error_class,
               due_at, enqueued_at, replayed_from
          FROM {schema}.job_runs
         WHERE id < %(before)s
         ORDER BY id DESC
         LIMIT %(reach)s) recent
 WHERE (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
   AND (%(outcomes)s::text[] IS NULL OR outcome = ANY(%(outcomes)s))
   AND (%(worker_id)s::text IS NULL OR worker_id = %(worker_id)s)
   AND (%(text)s::text IS NULL
        OR strpos(lower(error), lower(%(text)s)) > 0
        OR strpos(lower(job_type), lower(%(text)s)) > 0
        OR job_id::text = %(text)s)
 ORDER BY id DESC
 LIMIT %(limit)s
