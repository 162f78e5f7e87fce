-- Attempts that were charged, interruptions apart, never exceed the budget.
SELECT j.id AS job_id FROM jobs j WHERE j.attempts >= j.max_attempts
UNION ALL
SELECT d.original_job_id FROM dead_letter_jobs d WHERE d.attempts > d.max_attempts
UNION ALL
SELECT r.job_id
  FROM job_runs r
  JOIN dead_letter_jobs d ON d.original_job_id = r.job_id
 WHERE r.outcome IN ('retried', 'dead')
   AND r.attempt > 0
 GROUP BY r.job_id, d.max_attempts
HAVING count(*) > d.max_attempts
