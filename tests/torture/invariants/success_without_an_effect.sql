-- What the queue calls a success, the ledger saw from start to end.
SELECT r.job_id
  FROM job_runs r
  JOIN torture.accepted a ON a.job_id = r.job_id
 WHERE r.outcome = 'succeeded'
   AND NOT EXISTS (SELECT FROM torture.ledger l WHERE l.job_id = r.job_id AND l.worker_id = r.worker_id AND l.event = 'end')
