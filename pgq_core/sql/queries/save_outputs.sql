-- The last lines that workers of this supervisor printed, for a reader on another host.
UPDATE {schema}.workers w
   SET last_output = given.output
  FROM unnest(%(ids)s::text[], %(outputs)s::text[]) AS given(id, output)
 WHERE w.id = given.id
