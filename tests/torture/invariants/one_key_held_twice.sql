-- A key is held by at most one live job.
SELECT min(id) AS job_id
  FROM jobs
 WHERE idempotency_key IS NOT NULL
 GROUP BY idempotency_key
HAVING count(*) > 1
