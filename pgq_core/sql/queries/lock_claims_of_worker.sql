-- What a dead worker still held, with all that is needed to decide about it (rows made by hand are left to the reaper). Waits for a statement of the dead that is still under way.
SELECT j.id, j.claim_token, j.locked_by AS worker_id, j.queue, j.job_type, j.attempts, j.max_attempts, j.losses, j.suspect,
       extract(epoch FROM t.backoff_base)::double precision AS backoff_base, extract(epoch FROM t.backoff_cap)::double precision AS backoff_cap
  FROM {schema}.jobs j
  LEFT JOIN {schema}.job_types t ON t.name = j.job_type
 WHERE j.locked_by = %(worker_id)s
   AND j.status = 'running'
   AND j.claim_token IS NOT NULL
   AND j.locked_at IS NOT NULL
 ORDER BY j.id
   FOR UPDATE OF j
