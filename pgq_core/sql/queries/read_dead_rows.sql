-- What is left in `jobs` of rows that are gone, by the server's own estimate, and whether we may remove it. Costs nothing: no row is read.
-- Before version 17 only the owner may (strictly the database's owner, too, whom we leave out); from then on whoever has MAINTAIN.
SELECT pg_stat_get_dead_tuples(c.oid) AS dead, pg_stat_get_live_tuples(c.oid) AS live, pg_relation_size(c.oid) AS bytes,
       CASE WHEN current_setting('server_version_num')::int >= 170000 THEN has_table_privilege(c.oid, 'MAINTAIN')
            ELSE pg_has_role(c.relowner, 'USAGE') END AS may_vacuum
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s
   AND c.relname = 'jobs'
