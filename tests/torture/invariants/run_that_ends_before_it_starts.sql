-- Each recorded run is closed, and in the right order.
SELECT job_id
  FROM job_runs
 WHERE finished_at IS NULL
    OR finished_at < started_at
