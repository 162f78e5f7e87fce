-- Inserts a batch of jobs without keys that differ in their payloads alone: one text, a line for each (JSON text has no line end in it).
-- An array of them would cost the client as much as all the rest: each element is quoted there and read back here.
-- The ids come in the order of the input: rows are inserted, and so numbered, in that order.
WITH inserted AS (
    INSERT INTO {schema}.jobs (queue, payload, priority, not_before, max_attempts, timeout, trace_context)
    SELECT %(queue)s::text, line::jsonb, %(priority)s::int, coalesce(%(not_before)s::timestamptz, greatest(now(), statement_timestamp() + %(delay)s::interval)),
           %(max_attempts)s::int, %(timeout)s::interval, %(trace_context)s::jsonb
      FROM string_to_table(%(payloads)s::text, E'\n') AS line
    RETURNING id
)
SELECT array_agg(id ORDER BY id)::text AS ids
  FROM inserted
