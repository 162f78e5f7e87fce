-- Claims jobs that this transaction has locked. Rows come in no order. Large data is left behind, see claim_jobs.
WITH token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
)
UPDATE {schema}.jobs j
   SET status = 'running',
       locked_by = %(worker_id)s,
       locked_at = now(),
       claim_token = (SELECT value FROM token),
       lease_until = NULL,
       cancel_requested = false
 WHERE j.id = ANY (%(ids)s::bigint[])
   AND j.locked_by IS NULL
RETURNING id, queue, job_type,
          CASE WHEN pg_column_size(payload) > 8000 THEN '' ELSE (payload -> 'data')::text END AS data, idempotency_key, priority, attempts, max_attempts,
          date_part('epoch', not_before) AS not_before, date_part('epoch', created_at) AS created_at,
          claim_token, timeout, losses, suspect, last_error, trace_context, origin_job_id, replayed_from,
          date_part('epoch', clock_timestamp()) AS claimed_at
