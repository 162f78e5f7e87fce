-- Puts jobs that do not run into another queue, keeping priority, due time and attempts. Answers where they were.
-- Running jobs and those held by flow control are left alone. Rows are locked in id order.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(queues)s::text[]) AS t(id, queue)
), held AS MATERIALIZED (
    SELECT j.id, j.status, j.queue, i.queue AS wanted
      FROM {schema}.jobs j
      JOIN input i ON i.id = j.id
     ORDER BY j.id
       FOR UPDATE OF j
), moved AS (
    UPDATE {schema}.jobs j
       SET queue = h.wanted
      FROM held h
     WHERE j.id = h.id
       AND h.status IN ('pending', 'scheduled')
       AND h.queue <> h.wanted
    RETURNING j.id
)
SELECT id, status, queue
  FROM held
 ORDER BY id
