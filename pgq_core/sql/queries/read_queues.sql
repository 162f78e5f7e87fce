-- Every queue with what lies in it. Names come from loose index scans (one look-up per name), counts stop at `cap`.
-- A queue that was deeper than `cap` a moment ago is not counted again (`deep_*`): its caller knows, and asks on a slower clock.
-- Pending jobs are counted from the back of the claim index: rows that a forgotten transaction keeps dead lie at its front.
WITH RECURSIVE pending_names AS (
    (SELECT queue FROM {schema}.jobs WHERE status = 'pending' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {schema}.jobs j WHERE j.status = 'pending' AND j.queue > p.queue ORDER BY j.queue LIMIT 1)
      FROM pending_names p
     WHERE p.queue IS NOT NULL
), scheduled_names AS (
    (SELECT queue FROM {schema}.jobs WHERE status = 'scheduled' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {schema}.jobs j WHERE j.status = 'scheduled' AND j.queue > p.queue ORDER BY j.queue LIMIT 1)
      FROM scheduled_names p
     WHERE p.queue IS NOT NULL
), waiting_names AS (
    (SELECT queue FROM {schema}.jobs WHERE status = 'waiting' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {schema}.jobs j WHERE j.status = 'waiting' AND j.queue > p.queue ORDER BY j.queue LIMIT 1)
      FROM waiting_names p
     WHERE p.queue IS NOT NULL
), dead_names AS (
    (SELECT queue FROM {schema}.dead_letter_jobs WHERE resolution IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT d.queue FROM {schema}.dead_letter_jobs d WHERE d.resolution IS NULL AND d.queue > p.queue ORDER BY d.queue LIMIT 1)
      FROM dead_names p
     WHERE p.queue IS NOT NULL
), running AS (
    SELECT queue, count(*) AS jobs
      FROM {schema}.jobs
     WHERE locked_by IS NOT NULL
     GROUP BY queue
), names AS (
    (SELECT name FROM {schema}.queues WHERE paused OR audit <> 'all' ORDER BY name LIMIT %(most)s)
    UNION (SELECT queue FROM pending_names WHERE queue IS NOT NULL LIMIT %(most)s)
    UNION (SELECT queue FROM scheduled_names WHERE queue IS NOT NULL LIMIT %(most)s)
    UNION (SELECT queue FROM waiting_names WHERE queue IS NOT NULL LIMIT %(most)s)
    UNION (SELECT queue FROM dead_names WHERE queue IS NOT NULL LIMIT %(most)s)
    UNION SELECT queue FROM running
    UNION SELECT unnest(queues) FROM {schema}.workers WHERE stopped_at IS NULL
    ORDER BY 1
    LIMIT %(most)s
)
SELECT n.name,
       coalesce(q.paused, false) AS paused, q.paused_at, q.paused_by, q.pause_reason,
       coalesce(q.audit, 'all') AS audit, CASE WHEN q.audit = 'sample' THEN q.audit_sample END AS audit_sample,
       pending.jobs AS pending, scheduled.jobs AS scheduled, scheduled.retrying, waiting.jobs AS waiting,
       coalesce(running.jobs, 0) AS running, dead.letters AS dead,
       oldest.since AS oldest_pending_at,
       front.job_types,
       left(coalesce(retried.error, died.error), 300) AS last_error
  FROM names n
  LEFT JOIN {schema}.queues q ON q.name = n.name
  LEFT JOIN running ON running.queue = n.name
 CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
      FROM (SELECT
              FROM {schema}.jobs j
             WHERE j.queue = n.name
               AND j.status = 'pending'
               AND n.name <> ALL(%(deep_pending)s::text[])
             ORDER BY (-j.priority) DESC, j.not_before DESC, j.id DESC
             LIMIT %(cap)s + 1) counted
  ) pending
 CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, count(*) FILTER (WHERE attempts > 0) AS retrying
      FROM (SELECT j.attempts
              FROM {schema}.jobs j
             WHERE j.queue = n.name
               AND j.status = 'scheduled'
               AND n.name <> ALL(%(deep_scheduled)s::text[])
             ORDER BY j.not_before, j.id
             LIMIT %(cap)s + 1) counted
  ) scheduled
 CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
      FROM (SELECT
              FROM {schema}.jobs j
             WHERE j.queue = n.name
               AND j.status = 'waiting'
               AND n.name <> ALL(%(deep_waiting)s::text[])
             ORDER BY j.waiting_for, j.id
             LIMIT %(cap)s + 1) counted
  ) waiting
 CROSS JOIN LATERAL (
    SELECT count(*) AS letters
      FROM (SELECT
              FROM {schema}.dead_letter_jobs d
             WHERE d.queue = n.name
               AND d.resolution IS NULL
               AND n.name <> ALL(%(deep_dead)s::text[])
             ORDER BY d.id
             LIMIT %(cap)s + 1) counted
  ) dead
 CROSS JOIN LATERAL (
    -- Within one priority the first row is the oldest one; so one look-up per priority finds the oldest of all.
    WITH RECURSIVE level AS (
        (SELECT j.priority, greatest(j.not_before, j.created_at) AS since
           FROM {schema}.jobs j
          WHERE j.queue = n.name AND j.status = 'pending'
          ORDER BY (-j.priority), j.not_before, j.id
          LIMIT 1)
        UNION ALL
        SELECT following.priority, following.since
          FROM level l
         CROSS JOIN LATERAL (
            SELECT j.priority, greatest(j.not_before, j.created_at) AS since
              FROM {schema}.jobs j
             WHERE j.queue = n.name AND j.status = 'pending' AND (-j.priority) > (-l.priority)
             ORDER BY (-j.priority), j.not_before, j.id
             LIMIT 1
         ) following
    )
    SELECT min(since) AS since
      FROM (SELECT since FROM level LIMIT 50) levels
  ) oldest
 CROSS JOIN LATERAL (
    -- Jobs whose type nobody knows are left behind at the front, so a look at the front finds them.
    SELECT coalesce(array_agg(DISTINCT job_type), '{{}}') AS job_types
      FROM (SELECT j.job_type
              FROM {schema}.jobs j
             WHERE j.queue = n.name AND j.status = 'pending'
             ORDER BY (-j.priority), j.not_before, j.id
             LIMIT 100) first_jobs
  ) front
  LEFT JOIN LATERAL (
    SELECT last_error AS error
      FROM (SELECT j.last_error
              FROM {schema}.jobs j
             WHERE j.queue = n.name AND j.status = 'scheduled'
             ORDER BY j.not_before, j.id
             LIMIT 20) soon
     WHERE last_error IS NOT NULL
     LIMIT 1
  ) retried ON true
  LEFT JOIN LATERAL (
    SELECT d.last_error AS error
      FROM {schema}.dead_letter_jobs d
     WHERE d.queue = n.name AND d.resolution IS NULL
     ORDER BY d.id DESC
     LIMIT 1
  ) died ON true
 ORDER BY n.name
