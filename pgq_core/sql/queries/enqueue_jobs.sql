-- Inserts a batch of jobs, keyed or not, and tells per item, in input order, what became of it: created, or the job that has its key.
-- Of items with the same key the first one counts. Keys are taken in one order, so that two batches cannot deadlock.
-- Ids without a key are matched by rank: rows are inserted, and so numbered, in the order of the input.
-- An id of NULL: the key was in another transaction's hands, which this statement cannot see yet. The caller asks again.
WITH input AS MATERIALIZED (
    SELECT t.*, row_number() OVER (PARTITION BY key ORDER BY position) AS nth
      FROM unnest(%(queues)s::text[], %(payloads)s::jsonb[], %(priorities)s::int[], %(delays)s::interval[], %(not_befores)s::timestamptz[],
                  %(keys)s::text[], %(max_attempts)s::int[], %(timeouts)s::interval[], %(trace_contexts)s::jsonb[])
        WITH ORDINALITY AS t(queue, payload, priority, delay, not_before, key, max_attempts, timeout, trace_context, position)
), inserted AS (
    INSERT INTO {schema}.jobs (queue, payload, priority, not_before, idempotency_key, max_attempts, timeout, trace_context)
    SELECT queue, payload, priority, coalesce(not_before, now() + coalesce(delay, '0')), key, max_attempts, timeout, trace_context
      FROM input
     WHERE key IS NULL
        OR nth = 1
     ORDER BY key COLLATE "C" NULLS FIRST, position
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING id, idempotency_key
), unkeyed AS (
    SELECT items.position, ids.id
      FROM (SELECT position, row_number() OVER (ORDER BY position) AS rank FROM input WHERE key IS NULL) items
      JOIN (SELECT id, row_number() OVER (ORDER BY id) AS rank FROM inserted WHERE idempotency_key IS NULL) ids USING (rank)
)
SELECT i.position::int AS position,
       coalesce(u.id, n.id, k.job_id) AS id,
       u.id IS NOT NULL OR (n.id IS NOT NULL AND i.nth = 1) AS created,
       i.key IS NOT NULL
       AND coalesce(CASE WHEN n.id IS NOT NULL THEN {schema}.payload_fingerprint(f.queue, f.payload) ELSE k.payload_hash END
                    <> {schema}.payload_fingerprint(i.queue, i.payload), false) AS conflict
  FROM input i
  LEFT JOIN unkeyed u ON u.position = i.position
  LEFT JOIN inserted n ON n.idempotency_key = i.key
  LEFT JOIN input f ON f.key = i.key AND f.nth = 1
  LEFT JOIN LATERAL (SELECT job_id, payload_hash
                       FROM {schema}.job_keys
                      WHERE key = i.key
                        AND n.id IS NULL
                        AND (expires_at IS NULL OR expires_at > now())
                      LIMIT 1) k ON true
 ORDER BY i.position
