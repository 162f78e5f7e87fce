-- An accepted job is live, or a dead letter, or has a run that ended it for good.
-- Where a queue does not keep all, the ledger's word that it came to its end is enough.
SELECT a.job_id
  FROM torture.accepted a
 WHERE NOT EXISTS (SELECT FROM jobs j WHERE j.id = a.job_id)
   AND NOT EXISTS (SELECT FROM dead_letter_jobs d WHERE d.original_job_id = a.job_id)
   AND NOT EXISTS (SELECT FROM job_runs r WHERE r.job_id = a.job_id AND r.outcome IN ('succeeded', 'cancelled', 'discarded', 'expired'))
   AND NOT (EXISTS (SELECT FROM queues WHERE audit <> 'all')
            AND EXISTS (SELECT FROM torture.ledger l WHERE l.job_id = a.job_id AND l.event = 'end')
            AND NOT EXISTS (SELECT FROM job_runs r WHERE r.job_id = a.job_id))
