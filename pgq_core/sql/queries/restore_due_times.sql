-- Takes a change of due times back, for jobs that have not been claimed meanwhile and still carry the changed time or status.
-- Rows are locked in id order, and found from the batch's side, see reschedule_jobs.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(due)s::timestamptz[]) AS t(id, due)
), held AS MATERIALIZED (
    SELECT j.id, j.status, i.due
      FROM (SELECT * FROM input ORDER BY id) i
     CROSS JOIN LATERAL (
           SELECT id, status
             FROM {schema}.jobs
            WHERE id = i.id
              FOR UPDATE) j
), changes AS MATERIALIZED (
    SELECT array_agg(id ORDER BY id) AS ids, array_agg(due ORDER BY id) AS due
      FROM held
     WHERE status IN ('pending', 'scheduled')
), changed AS (
    UPDATE {schema}.jobs j
       SET not_before = (SELECT due[width_bucket(j.id, ids)] FROM changes)
     WHERE j.id = ANY ((SELECT ids FROM changes)::bigint[])
    RETURNING j.id
)
SELECT id, status
  FROM held
 ORDER BY id
