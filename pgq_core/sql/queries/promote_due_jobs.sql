-- Makes due jobs of these queues pending, the longest due first, `limit` per queue and pass; sleepers are woken for them.
-- The guard of the update is not the condition of a partial index: without statistics that would be read whole, instead of the primary key.
-- Answers how many, and in how many seconds the next one is due (NULL: none is scheduled).
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest(%(queues)s::text[]) AS served(queue)
     CROSS JOIN LATERAL (
           SELECT id
             FROM {schema}.jobs
            WHERE queue = served.queue
              AND status = 'scheduled'
              AND not_before <= now()
              AND id <> ALL (%(except_jobs)s::bigint[])
            ORDER BY not_before, id
            LIMIT %(limit)s
              FOR UPDATE SKIP LOCKED) j
), promoted AS (
    UPDATE {schema}.jobs j
       SET status = 'pending'
     WHERE j.id = ANY (ARRAY(SELECT id FROM due))
       AND j.locked_by IS NULL
    RETURNING j.id
), woken AS (
    SELECT pg_notify({schema}.wake_channel(), 'jobs')
     WHERE EXISTS (SELECT FROM promoted)
       AND EXISTS (SELECT FROM {schema}.worker_waits WHERE waiting AND worker_id <> %(except_worker)s)
       AND pg_notification_queue_usage() < 0.5
), next_due AS (
    SELECT min(j.not_before) AS at
      FROM unnest(%(queues)s::text[]) AS served(queue)
     CROSS JOIN LATERAL (
           SELECT not_before
             FROM {schema}.jobs
            WHERE queue = served.queue
              AND status = 'scheduled'
              AND not_before > now()
            ORDER BY not_before, id
            LIMIT 1) j
)
SELECT (SELECT count(*) FROM promoted)::int AS promoted,
       (SELECT extract(epoch FROM at - clock_timestamp())::double precision FROM next_due) AS next_due_in,
       (SELECT count(*) FROM woken)::int AS woken
