-- Frees keys that nobody holds any more: their job or unresolved dead letter is gone without its triggers having run
-- (a restored table, triggers switched off). One window of the table a call, in key order, from `after` on.
-- Only keys without a holder are touched: the key row of a live job is never locked. A key that was taken meanwhile stays.
-- Unresolved is said by resolved_at: said as the partial indexes say it, one of them would be read whole without statistics.
WITH page AS MATERIALIZED (
    SELECT key, job_id, expires_at
      FROM {schema}.job_keys
     WHERE key > %(after)s
     ORDER BY key
     LIMIT %(limit)s
), orphan AS MATERIALIZED (
    SELECT p.key, p.job_id, p.expires_at
      FROM page p
      LEFT JOIN LATERAL (SELECT true AS found
                           FROM {schema}.jobs j
                          WHERE j.id = p.job_id
                            AND j.idempotency_key = p.key
                          LIMIT 1) job ON true
      LEFT JOIN LATERAL (SELECT true AS found
                           FROM {schema}.dead_letter_jobs d
                          WHERE d.original_job_id = p.job_id
                            AND d.idempotency_key = p.key
                            AND d.resolved_at IS NULL
                          LIMIT 1) letter ON true
     WHERE CASE
               WHEN p.expires_at IS NULL THEN job.found IS NULL
               ELSE p.expires_at = 'infinity' AND letter.found IS NULL
           END
), released AS (
    UPDATE {schema}.job_keys k
       SET expires_at = now()
      FROM orphan o
     WHERE k.key = o.key
       AND k.job_id = o.job_id
       AND k.expires_at IS NOT DISTINCT FROM o.expires_at
)
SELECT max(key) AS last_key FROM page HAVING count(*) > 0
