-- Takes a change of due times back, for jobs that have not been claimed meanwhile and still carry the changed time or status.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(due)s::timestamptz[]) AS t(id, due)
), held AS MATERIALIZED (
    SELECT j.id, j.status, i.due
      FROM {schema}.jobs j
      JOIN input i ON i.id = j.id
     ORDER BY j.id
       FOR UPDATE OF j
), changed AS (
    UPDATE {schema}.jobs j
       SET not_before = h.due
      FROM held h
     WHERE j.id = h.id
       AND h.status IN ('pending', 'scheduled')
    RETURNING j.id
)
SELECT id, status
  FROM held
 ORDER BY id
