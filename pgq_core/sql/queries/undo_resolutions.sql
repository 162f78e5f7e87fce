-- Takes resolutions back, but only those that one operation made: a letter that was resolved again since is somebody else's.
-- A row per letter that exists.
WITH mine AS MATERIALIZED (
    SELECT id,
           resolution IS NULL
           OR resolution = %(resolution)s AND resolved_by = %(operator)s AS is_mine
      FROM {schema}.dead_letter_jobs
     WHERE id = ANY(%(ids)s::bigint[])
     ORDER BY id
       FOR UPDATE
), undone AS MATERIALIZED (
    SELECT dead_letter_id, refusal
      FROM {schema}.undo_resolutions(ARRAY(SELECT id FROM mine WHERE is_mine))
)
SELECT m.id, CASE WHEN m.is_mine THEN u.refusal ELSE 'it has been resolved again since' END AS refusal
  FROM mine m
  LEFT JOIN undone u ON u.dead_letter_id = m.id
 ORDER BY m.id
