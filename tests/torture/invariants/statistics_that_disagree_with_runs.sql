-- Charts and percentiles count what the audit trail holds, run by run. (What was cancelled before it ran is left out.)
SELECT coalesce(r.queue, s.queue) AS queue, coalesce(r.job_type, s.job_type) AS job_type, r.runs, s.counted
  FROM (SELECT queue, job_type, count(*) AS runs
          FROM job_runs
         WHERE outcome IN ('succeeded', 'retried', 'dead', 'lost', 'released', 'snoozed')
           AND queue IS NOT NULL
         GROUP BY queue, job_type) r
  FULL JOIN (SELECT queue, job_type, sum(succeeded + retried + dead + lost + released + snoozed) AS counted
               FROM job_stats
              GROUP BY queue, job_type) s USING (queue, job_type)
 WHERE coalesce(r.runs, 0) <> coalesce(s.counted, 0)
