-- Frees keys that nobody holds any more: their job or unresolved dead letter is gone without its triggers having run
-- (a restored table, triggers switched off). One window of the table a call, in key order, from `after` on.
-- Only keys without a holder are touched: the key row of a live job is never locked. A key that was taken meanwhile stays.
WITH page AS MATERIALIZED (
    SELECT key, job_id, expires_at
      FROM {schema}.job_keys
     WHERE key > %(after)s
     ORDER BY key
     LIMIT %(limit)s
), released AS (
    UPDATE {schema}.job_keys k
       SET expires_at = now()
      FROM page p
     WHERE k.key = p.key
       AND k.job_id = p.job_id
       AND k.expires_at IS NOT DISTINCT FROM p.expires_at
       AND ((k.expires_at IS NULL
             AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = p.job_id AND j.idempotency_key = p.key))
            OR (k.expires_at = 'infinity'
                AND NOT EXISTS (SELECT FROM {schema}.dead_letter_jobs d
                                 WHERE d.original_job_id = p.job_id AND d.idempotency_key = p.key AND d.resolution IS NULL)))
)
SELECT max(key) AS last_key FROM page HAVING count(*) > 0
