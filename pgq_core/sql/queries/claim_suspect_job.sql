-- Claims one suspect (it was running when a worker died) for a worker that has nothing else in hand: it runs alone,
-- so that another death can be charged to it and to nobody else.
-- Pending is said in other words than the claim index says it, so that the small index of suspects is read, whatever the statistics say.
WITH claimable AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = ANY (ARRAY(SELECT asked
                                FROM unnest(%(queues)s::text[]) AS asked
                               WHERE NOT EXISTS (SELECT FROM {schema}.queues q WHERE q.name = asked AND q.paused)))
       AND suspect
       AND status NOT IN ('scheduled', 'waiting', 'running')
       AND not_before <= now()
       AND job_type = ANY (%(job_types)s::text[])
       AND id <> ALL (%(except_jobs)s::bigint[])
     ORDER BY (-priority), not_before, id
     LIMIT 1
       FOR UPDATE SKIP LOCKED
), token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
)
UPDATE {schema}.jobs j
   SET status = 'running',
       locked_by = %(worker_id)s,
       locked_at = now(),
       claim_token = (SELECT value FROM token),
       lease_until = NULL,
       cancel_requested = false
 WHERE j.id = ANY (ARRAY(SELECT id FROM claimable))
   AND j.locked_by IS NULL
RETURNING id, queue, job_type, (payload -> 'data')::text AS data, idempotency_key, priority, attempts, max_attempts,
          date_part('epoch', not_before) AS not_before, date_part('epoch', created_at) AS created_at,
          claim_token, timeout, losses, suspect, last_error, trace_context, origin_job_id, replayed_from,
          date_part('epoch', clock_timestamp()) AS claimed_at
