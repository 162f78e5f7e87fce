-- Puts jobs that do not run into another queue, keeping priority, due time and attempts. Answers where they were.
-- Running jobs and those held by flow control are left alone. Rows are locked in id order, and found from the batch's side, see reschedule_jobs.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(queues)s::text[]) AS t(id, queue)
), held AS MATERIALIZED (
    SELECT j.id, j.status, j.queue, i.queue AS wanted
      FROM (SELECT * FROM input ORDER BY id) i
     CROSS JOIN LATERAL (
           SELECT id, status, queue
             FROM {schema}.jobs
            WHERE id = i.id
              FOR UPDATE) j
), moves AS MATERIALIZED (
    SELECT array_agg(id ORDER BY id) AS ids, array_agg(wanted ORDER BY id) AS queues
      FROM held
     WHERE status IN ('pending', 'scheduled')
       AND queue <> wanted
), moved AS (
    UPDATE {schema}.jobs j
       SET queue = (SELECT queues[width_bucket(j.id, ids)] FROM moves)
     WHERE j.id = ANY ((SELECT ids FROM moves)::bigint[])
    RETURNING j.id
)
SELECT id, status, queue
  FROM held
 ORDER BY id
