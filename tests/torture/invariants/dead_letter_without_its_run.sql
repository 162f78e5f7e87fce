-- A dead letter has the one run that ended its job, and tells of as many attempts as its runs do.
SELECT d.original_job_id AS job_id
  FROM dead_letter_jobs d
 WHERE NOT EXISTS (SELECT FROM job_runs r WHERE r.job_id = d.original_job_id AND r.outcome IN ('dead', 'expired'))
    OR d.attempts < (SELECT count(*) FROM job_runs r WHERE r.job_id = d.original_job_id AND r.outcome = 'retried')
