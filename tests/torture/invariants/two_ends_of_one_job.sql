-- A job ends once: no second success, no death after a success.
SELECT job_id
  FROM job_runs
 WHERE outcome IN ('succeeded', 'dead', 'cancelled', 'discarded', 'expired')
 GROUP BY job_id
HAVING count(*) > 1
