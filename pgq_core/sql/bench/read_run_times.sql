-- How long jobs took from their due time to their start and to their end, in seconds; a job runs once here.
SELECT count(*) AS runs,
       count(DISTINCT job_id) AS jobs,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - greatest(due_at, enqueued_at))::double precision) AS to_start,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - greatest(due_at, enqueued_at))::double precision) AS to_finish
  FROM {schema}.job_runs
 WHERE queue = %(queue)s
   AND outcome = 'succeeded'
