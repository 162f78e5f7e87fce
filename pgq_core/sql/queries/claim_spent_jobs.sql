-- Takes jobs that have no attempt left (their budget was lowered by hand), to be buried in the same transaction.
WITH claimable AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE attempts >= max_attempts
       AND status IN ('pending', 'scheduled')
       AND id <> ALL (%(except_jobs)s::bigint[])
     ORDER BY id
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
), token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
)
UPDATE {schema}.jobs j
   SET status = 'running',
       locked_by = %(holder)s,
       locked_at = now(),
       claim_token = (SELECT value FROM token),
       lease_until = now() + interval '1 minute'
 WHERE j.id = ANY (ARRAY(SELECT id FROM claimable))
   AND j.status IN ('pending', 'scheduled')
RETURNING j.id, j.claim_token, j.queue, j.job_type, j.last_error
