-- Inserts a batch of jobs, keyed or not, and tells per item, in input order, what became of it: created, or the job that has its key.
-- Of items with the same key the first one counts. Keys are taken in one order, so that two batches cannot deadlock.
-- Ids without a key are matched by rank: rows are inserted, and so numbered, in the order of the input. Ids with a key are matched by
-- windows over the key, never by joins: a plan made for a small batch would turn a join of a large one into n * n steps.
-- An id of NULL: the key was in another transaction's hands, which this statement cannot see yet. The caller asks again.
WITH input AS MATERIALIZED (
    SELECT t.*,
           row_number() OVER (PARTITION BY key ORDER BY position) AS nth,
           CASE WHEN key IS NOT NULL THEN {schema}.payload_fingerprint(queue, payload) END AS fingerprint
      FROM unnest(%(queues)s::text[], %(payloads)s::jsonb[], %(priorities)s::int[], %(delays)s::interval[], %(not_befores)s::timestamptz[],
                  %(keys)s::text[], %(max_attempts)s::int[], %(timeouts)s::interval[], %(trace_contexts)s::jsonb[])
        WITH ORDINALITY AS t(queue, payload, priority, delay, not_before, key, max_attempts, timeout, trace_context, position)
), inserted AS (
    INSERT INTO {schema}.jobs (queue, payload, priority, not_before, idempotency_key, max_attempts, timeout, trace_context)
    SELECT queue, payload, priority, coalesce(not_before, greatest(now(), statement_timestamp() + delay)), key, max_attempts, timeout, trace_context
      FROM input
     WHERE key IS NULL
        OR nth = 1
     ORDER BY key COLLATE "C" NULLS FIRST, position
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING id, idempotency_key
), unkeyed AS (
    SELECT array_agg(id ORDER BY id) AS ids
      FROM inserted
     WHERE idempotency_key IS NULL
), keyed AS (
    SELECT key, position, nth, fingerprint,
           max(id) OVER (PARTITION BY key) AS new_id,
           min(fingerprint) FILTER (WHERE nth = 1) OVER (PARTITION BY key) AS first_fingerprint
      FROM (SELECT key, position, nth, fingerprint, NULL::bigint AS id FROM input WHERE key IS NOT NULL
             UNION ALL
            SELECT idempotency_key, NULL, NULL, NULL, id FROM inserted WHERE idempotency_key IS NOT NULL) asked_and_inserted
)
SELECT i.position::int AS position, (SELECT ids FROM unkeyed)[i.nth] AS id, true AS created, false AS conflict
  FROM input i
 WHERE i.key IS NULL
 UNION ALL
SELECT k.position::int, coalesce(k.new_id, holder.job_id), k.new_id IS NOT NULL AND k.nth = 1,
       coalesce(CASE WHEN k.new_id IS NOT NULL THEN k.first_fingerprint ELSE holder.payload_hash END <> k.fingerprint, false)
  FROM keyed k
  LEFT JOIN LATERAL (SELECT job_id, payload_hash
                       FROM {schema}.job_keys
                      WHERE key = k.key
                        AND k.new_id IS NULL
                        AND (expires_at IS NULL OR expires_at > now())
                      LIMIT 1) holder ON true
 WHERE k.position IS NOT NULL
 ORDER BY position
