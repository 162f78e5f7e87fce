-- Runs that ended in each second since the first one started.
SELECT floor(extract(epoch FROM finished_at - (SELECT min(started_at) FROM {schema}.job_runs WHERE queue = %(queue)s)))::int AS second,
       count(*) AS runs
  FROM {schema}.job_runs
 WHERE queue = %(queue)s
 GROUP BY 1
 ORDER BY 1
 LIMIT 100000
