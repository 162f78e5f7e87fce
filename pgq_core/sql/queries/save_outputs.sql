-- The last lines that workers of this supervisor printed, for a reader on another host. Not to rows that somebody has locked.
WITH free AS MATERIALIZED (
    SELECT w.id, given.output
      FROM unnest(%(ids)s::text[], %(outputs)s::text[]) AS given(id, output)
      JOIN {schema}.workers w ON w.id = given.id
     ORDER BY w.id
       FOR UPDATE OF w SKIP LOCKED
)
UPDATE {schema}.workers w
   SET last_output = free.output
  FROM free
 WHERE w.id = free.id
RETURNING w.id
