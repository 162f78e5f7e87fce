-- Adds dead letters that were exported, as unresolved ones; answers per document (`line`) its new id, or NULL when it is here already:
-- the same job died at the same moment. A key is taken again where nobody else has it.
WITH input AS (
    SELECT line, doc,
           (doc ->> 'original_job_id')::bigint AS original_job_id,
           (doc ->> 'died_at')::timestamptz AS died_at
      FROM unnest(%(lines)s::int[], %(docs)s::jsonb[]) AS t(line, doc)
), fresh AS (
    SELECT DISTINCT ON (original_job_id, died_at) line, doc, original_job_id, died_at
      FROM input i
     WHERE NOT EXISTS (SELECT
                         FROM {schema}.dead_letter_jobs d
                        WHERE d.original_job_id = i.original_job_id
                          AND d.died_at = i.died_at)
     ORDER BY original_job_id, died_at, line
), added AS (
    INSERT INTO {schema}.dead_letter_jobs (original_job_id, queue, payload, last_error, error_class, traceback, reason, fingerprint,
                                           attempts, max_attempts, priority, timeout, idempotency_key, created_at, died_at,
                                           last_worker, attempt_log, origin_job_id, note)
    SELECT original_job_id, doc ->> 'queue', doc -> 'payload', doc ->> 'last_error', doc ->> 'error_class', doc ->> 'traceback',
           doc ->> 'reason', doc ->> 'fingerprint', (doc ->> 'attempts')::int, (doc ->> 'max_attempts')::int,
           (doc ->> 'priority')::int, make_interval(secs => (doc ->> 'timeout_seconds')::double precision), doc ->> 'idempotency_key',
           (doc ->> 'created_at')::timestamptz, died_at, doc ->> 'last_worker', coalesce(doc -> 'attempt_log', '[]'),
           coalesce((doc ->> 'origin_job_id')::bigint, original_job_id),
           coalesce(doc ->> 'note', format('imported: was dead letter %%s', doc ->> 'dead_letter_id'))
      FROM fresh
     ORDER BY line
    RETURNING id, original_job_id, died_at, queue, payload, idempotency_key
), keyed AS (
    INSERT INTO {schema}.job_keys (key, job_id, queue, payload_hash, expires_at)
    SELECT idempotency_key, original_job_id, queue, {schema}.payload_fingerprint(queue, payload), 'infinity'
      FROM added
     WHERE idempotency_key IS NOT NULL
     ORDER BY idempotency_key
    ON CONFLICT (key) DO NOTHING
)
SELECT i.line, a.id AS dead_letter_id
  FROM input i
  LEFT JOIN fresh f ON f.line = i.line
  LEFT JOIN added a ON a.original_job_id = f.original_job_id AND a.died_at = f.died_at
 ORDER BY i.line
