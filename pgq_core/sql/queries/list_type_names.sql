-- The names of announced types, the latest ones first.
SELECT name
  FROM {schema}.job_types
 ORDER BY announced_at DESC, name
 LIMIT %(limit)s
