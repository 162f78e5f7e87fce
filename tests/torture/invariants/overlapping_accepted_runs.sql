-- Two attempts of one job whose outcomes were both accepted never overlapped in the ledger.
WITH attempt AS (
    SELECT job_id, worker_id, attempt, min(at) FILTER (WHERE event = 'start') AS started, max(at) FILTER (WHERE event = 'end') AS ended
      FROM torture.ledger
     GROUP BY job_id, worker_id, attempt
), accepted AS (
    SELECT a.*
      FROM attempt a
     WHERE EXISTS (SELECT
                     FROM job_runs r
                    WHERE r.job_id = a.job_id
                      AND r.worker_id = a.worker_id
                      AND r.attempt = a.attempt
                      AND r.outcome IN ('succeeded', 'retried', 'dead', 'snoozed'))
)
SELECT DISTINCT a.job_id
  FROM accepted a
  JOIN accepted b ON b.job_id = a.job_id AND (b.worker_id, b.attempt) > (a.worker_id, a.attempt)
 WHERE a.started < b.ended
   AND b.started < a.ended
