-- Cancels up to `limit` jobs of one queue and status that do not run and were there when the purge was confirmed (id <= max_id).
-- Rows are locked first: what a worker claims meanwhile is left to it. SKIP LOCKED: a purge waits for nobody, so it needs no
-- order of ids; each status is walked in the order of its own index.
WITH pending AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = %(queue)s
       AND status = 'pending'
       AND %(status)s = 'pending'
       AND id <= %(max_id)s
     ORDER BY (-priority), not_before, id
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
), scheduled AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = %(queue)s
       AND status = 'scheduled'
       AND %(status)s = 'scheduled'
       AND id <= %(max_id)s
     ORDER BY not_before, id
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
), waiting AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = %(queue)s
       AND status = 'waiting'
       AND %(status)s = 'waiting'
       AND id <= %(max_id)s
     ORDER BY waiting_for, id
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
)
SELECT id, {schema}.cancel(id) AS answer
  FROM (SELECT id FROM pending
        UNION ALL
        SELECT id FROM scheduled
        UNION ALL
        SELECT id FROM waiting) doomed
