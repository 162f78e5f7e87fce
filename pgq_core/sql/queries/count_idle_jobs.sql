-- How many jobs of a queue do not run, counted no further than one past `limit`, and the newest id among all jobs: what an
-- operator confirms before a purge.
SELECT (SELECT count(*)
          FROM ((SELECT FROM {schema}.jobs WHERE queue = %(queue)s AND status = 'pending' LIMIT %(limit)s + 1)
                UNION ALL
                (SELECT FROM {schema}.jobs WHERE queue = %(queue)s AND status = 'scheduled' LIMIT %(limit)s + 1)
                UNION ALL
                (SELECT FROM {schema}.jobs WHERE queue = %(queue)s AND status = 'waiting' LIMIT %(limit)s + 1)) idle) AS jobs,
       (SELECT coalesce(max(id), 0) FROM {schema}.jobs) AS newest_id
