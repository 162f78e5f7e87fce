-- Each attempt that the ledger saw to start has a run, or is running now.
-- Where a queue does not keep all, that of a job's only attempt may be missing, if the ledger saw its end.
SELECT l.job_id
  FROM (SELECT job_id, count(*) FILTER (WHERE event = 'start') AS starts, count(*) FILTER (WHERE event = 'end') AS ends
          FROM torture.ledger
         GROUP BY job_id) l
 WHERE l.starts > (SELECT count(*) FROM job_runs r WHERE r.job_id = l.job_id AND r.attempt > 0)
                  + (SELECT count(*) FROM jobs j WHERE j.id = l.job_id AND j.status = 'running')
   AND NOT (EXISTS (SELECT FROM queues WHERE audit <> 'all')
            AND (l.starts, l.ends) = (1, 1)
            AND NOT EXISTS (SELECT FROM job_runs r WHERE r.job_id = l.job_id))
