-- Cancels up to `limit` jobs of one queue that do not run and were there when the purge was confirmed (id <= max_id).
-- Rows are locked first: what a worker claims meanwhile is left to it. SKIP LOCKED: a purge waits for nobody, so no order
-- of ids is needed either; ordering by the one queue lets the index of the status serve without a sort.
WITH doomed AS MATERIALIZED (
    SELECT id
      FROM {schema}.jobs
     WHERE queue = %(queue)s
       AND status = %(status)s
       AND id <= %(max_id)s
     ORDER BY queue
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
)
SELECT id, {schema}.cancel(id) AS answer
  FROM doomed
