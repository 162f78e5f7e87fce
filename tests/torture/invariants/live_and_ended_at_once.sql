-- A job that has reached its end is in `jobs` no more.
SELECT j.id AS job_id
  FROM jobs j
 WHERE EXISTS (SELECT FROM dead_letter_jobs d WHERE d.original_job_id = j.id)
    OR EXISTS (SELECT FROM job_runs r WHERE r.job_id = j.id AND r.outcome IN ('succeeded', 'dead', 'cancelled', 'discarded', 'expired'))
