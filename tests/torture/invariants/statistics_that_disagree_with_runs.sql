-- Charts and percentiles count what the audit trail holds, run by run. (What was cancelled before it ran is left out.)
-- In a queue that does not keep all, only successes may be counted without a run.
SELECT queue, job_type, r.runs, s.counted
  FROM (SELECT queue, job_type, count(*) AS runs, count(*) FILTER (WHERE outcome = 'succeeded') AS succeeded
          FROM job_runs
         WHERE outcome IN ('succeeded', 'retried', 'dead', 'lost', 'released', 'snoozed')
           AND queue IS NOT NULL
         GROUP BY queue, job_type) r
  FULL JOIN (SELECT queue, job_type, sum(succeeded + retried + dead + lost + released + snoozed) AS counted, sum(succeeded) AS succeeded
               FROM job_stats
              GROUP BY queue, job_type) s USING (queue, job_type)
  LEFT JOIN queues q ON q.name = queue
 WHERE coalesce(r.runs - r.succeeded, 0) <> coalesce(s.counted - s.succeeded, 0)
    OR coalesce(r.succeeded, 0) > coalesce(s.succeeded, 0)
    OR coalesce(q.audit, 'all') = 'all' AND coalesce(r.succeeded, 0) <> coalesce(s.succeeded, 0)
