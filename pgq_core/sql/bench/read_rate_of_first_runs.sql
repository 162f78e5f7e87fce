-- Runs a second among the first `runs` that ended.
SELECT count(*) AS runs, extract(epoch FROM max(finished_at) - min(started_at))::double precision AS seconds
  FROM (SELECT started_at, finished_at
          FROM {schema}.job_runs
         WHERE queue = %(queue)s
         ORDER BY finished_at
         LIMIT %(runs)s) AS first_runs
