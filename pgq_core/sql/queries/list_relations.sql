-- Tables, views and sequences of one schema: whose they are and, for a table, its columns as "name type".
SELECT c.relname::text AS name,
       c.relkind::text AS kind,
       pg_get_userbyid(c.relowner)::text AS owner,
       pg_has_role(c.relowner, 'USAGE') AS is_ours_to_change,
       ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
               FROM pg_attribute a
              WHERE a.attrelid = c.oid
                AND a.attnum > 0
                AND NOT a.attisdropped
              ORDER BY a.attnum) AS columns
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s
   AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
 ORDER BY c.relname
