-- As lock_claims_of_worker, without the rows that somebody else has locked: the reaper gives those back once they are free.
SELECT j.id, j.claim_token, j.locked_by AS worker_id, j.queue, j.job_type, j.attempts, j.max_attempts, j.losses, j.suspect,
       extract(epoch FROM t.backoff_base)::double precision AS backoff_base, extract(epoch FROM t.backoff_cap)::double precision AS backoff_cap
  FROM {schema}.jobs j
  LEFT JOIN {schema}.job_types t ON t.name = j.job_type
 WHERE j.locked_by = %(worker_id)s
   AND j.status = 'running'
   AND j.claim_token IS NOT NULL
   AND j.locked_at IS NOT NULL
   FOR UPDATE OF j SKIP LOCKED
