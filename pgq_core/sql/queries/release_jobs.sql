-- Hands claimed jobs back that have not started: no run, no attempt, their place in the order kept.
-- Only jobs still running under the same claim. Rows are locked in id order, so that two batches cannot deadlock.
-- Rows are found from the batch's side, see reschedule_jobs.
-- One that was cancelled while it waited in a worker's hands ends here (one run row, attempt 0, counted like
-- any other end). Sleepers are woken for the rest.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) AS t(id, token)
), held AS MATERIALIZED (
    SELECT j.*
      FROM (SELECT * FROM input ORDER BY id) i
     CROSS JOIN LATERAL (
           SELECT *
             FROM {schema}.jobs
            WHERE id = i.id
              AND status = 'running'
              AND claim_token = i.token
              FOR UPDATE) j
), released AS (
    UPDATE {schema}.jobs j
       SET status = 'pending',
           locked_by = NULL,
           locked_at = NULL,
           lease_until = NULL
     WHERE j.id = ANY (ARRAY(SELECT id FROM held WHERE NOT cancel_requested))
    RETURNING j.id
), ended AS (
    DELETE FROM {schema}.jobs j
     WHERE j.id = ANY (ARRAY(SELECT id FROM held WHERE cancel_requested))
    RETURNING j.id
), run AS (
    INSERT INTO {schema}.job_runs (job_id, worker_id, started_at, finished_at, error, queue, job_type, attempt, outcome, priority,
                                   due_at, enqueued_at, replayed_from)
    SELECT id, locked_by, now(), now(), 'cancelled before it started', queue, job_type, 0, 'cancelled', priority,
           not_before, created_at, replayed_from
      FROM held
     WHERE cancel_requested
), counted AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, cancelled, durations, waits)
    SELECT date_bin('5 seconds', now(), timestamptz '2000-01-01 00:00+00'), queue, job_type, 16 + (pg_backend_pid() & 8191), count(*),
           {schema}.count_cells('{{}}'), {schema}.count_cells('{{}}')
      FROM held
     WHERE cancel_requested
     GROUP BY queue, job_type
     ORDER BY queue, job_type
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET cancelled = s.cancelled + excluded.cancelled
), woken AS (
    SELECT pg_notify({schema}.wake_channel(), 'jobs')
     WHERE EXISTS (SELECT FROM released)
       AND EXISTS (SELECT FROM {schema}.worker_waits WHERE waiting)
       AND pg_notification_queue_usage() < 0.5
)
SELECT id, false AS is_cancelled FROM released WHERE (SELECT count(*) FROM woken) >= 0
UNION ALL
SELECT id, true FROM ended
