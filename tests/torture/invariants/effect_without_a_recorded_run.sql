-- Each attempt that the ledger saw to start has a run, or is running now.
SELECT l.job_id
  FROM (SELECT job_id, count(*) AS starts FROM torture.ledger WHERE event = 'start' GROUP BY job_id) l
 WHERE l.starts > (SELECT count(*) FROM job_runs r WHERE r.job_id = l.job_id AND r.attempt > 0)
                  + (SELECT count(*) FROM jobs j WHERE j.id = l.job_id AND j.status = 'running')
