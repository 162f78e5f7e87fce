-- Inserts one job without an idempotency key: the shortest way in.
INSERT INTO {schema}.jobs (queue, payload, priority, not_before, max_attempts, timeout, trace_context)
VALUES (%(queue)s, %(payload)s::jsonb, %(priority)s, coalesce(%(not_before)s::timestamptz, greatest(now(), statement_timestamp() + %(delay)s::interval)),
        %(max_attempts)s, %(timeout)s::interval, %(trace_context)s::jsonb)
RETURNING id
