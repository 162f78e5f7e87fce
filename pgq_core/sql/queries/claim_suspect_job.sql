-- Claims one suspect (it was running when a worker died) for a worker that has nothing else in hand: it runs alone,
-- so that another death can be charged to it and to nobody else.
-- Pending is said in other words than the claim index says it, so that the small index of suspects is read, whatever the statistics say.
WITH claimable AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = ANY (%(queues)s::text[])
       AND suspect
       AND status NOT IN ('scheduled', 'waiting', 'running')
       AND not_before <= now()
       AND job_type = ANY (%(job_types)s::text[])
       AND NOT EXISTS (SELECT FROM {schema}.queues q WHERE q.name = jobs.queue AND q.paused)
     ORDER BY (-priority), not_before, id
     LIMIT 1
       FOR UPDATE SKIP LOCKED
), token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
), claimed AS (
    UPDATE {schema}.jobs j
       SET status = 'running',
           locked_by = %(worker_id)s,
           locked_at = now(),
           claim_token = (SELECT value FROM token),
           lease_until = NULL,
           cancel_requested = false
     WHERE j.id = ANY (ARRAY(SELECT id FROM claimable))
       AND j.locked_by IS NULL
    RETURNING j.id, j.queue, j.job_type, j.payload, j.idempotency_key, j.priority, j.attempts, j.max_attempts, j.not_before, j.created_at,
              j.claim_token, j.timeout, j.losses, j.suspect, j.last_error, j.trace_context, j.origin_job_id, j.replayed_from
)
SELECT id, queue, job_type, (payload -> 'data')::text AS data, idempotency_key, priority, attempts, max_attempts,
       extract(epoch FROM not_before)::double precision AS not_before, extract(epoch FROM created_at)::double precision AS created_at,
       claim_token, timeout, losses, suspect, last_error, trace_context, origin_job_id, replayed_from,
       extract(epoch FROM clock_timestamp())::double precision AS claimed_at
  FROM claimed
