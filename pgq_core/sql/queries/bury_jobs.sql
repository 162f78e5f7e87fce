-- Moves a batch of running jobs to dead_letter_jobs in one statement: dead letter with the story of all attempts, closed run, statistics.
-- Only jobs still running under the same claim. Rows are locked in id order, so that two batches cannot deadlock.
-- Rows are found from the batch's side, see reschedule_jobs.
-- `ran` is false for a job that ends without having run (spent budget, malformed): its run row has attempt 0.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(workers)s::text[], %(started)s::double precision[], %(finished)s::double precision[],
                  %(reasons)s::text[], %(charges)s::int[], %(errors)s::text[], %(error_classes)s::text[], %(tracebacks)s::text[],
                  %(fingerprints)s::text[], %(ran)s::boolean[])
        AS t(id, token, worker, started, finished, reason, charge, error, error_class, traceback, fingerprint, ran)
), held AS MATERIALIZED (
    SELECT j.*, i.worker, coalesce(to_timestamp(i.started), j.locked_at) AS started_at,
           coalesce(to_timestamp(i.finished), now()) AS finished_at, i.reason, i.charge, i.error, i.error_class, i.traceback,
           i.fingerprint, CASE WHEN i.ran THEN j.attempts + 1 ELSE 0 END AS attempt
      FROM (SELECT * FROM input ORDER BY id) i
     CROSS JOIN LATERAL (
           SELECT *
             FROM {schema}.jobs
            WHERE id = i.id
              AND status = 'running'
              AND claim_token = i.token
              FOR UPDATE) j
), buried AS (
    DELETE FROM {schema}.jobs j
     WHERE j.id = ANY (ARRAY(SELECT id FROM held))
), letter AS (
    INSERT INTO {schema}.dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, died_at, priority, max_attempts,
                                           idempotency_key, created_at, timeout, reason, error_class, traceback, fingerprint,
                                           last_worker, origin_job_id, replayed_from, trace_context, attempt_log)
    SELECT h.id, h.queue, h.payload, h.error, h.attempts + h.charge, now(), h.priority, h.max_attempts,
           h.idempotency_key, h.created_at, h.timeout, h.reason, h.error_class, h.traceback, h.fingerprint,
           h.worker, coalesce(h.origin_job_id, h.id), h.replayed_from, h.trace_context,
           coalesce((SELECT jsonb_agg(entry ORDER BY started_at)
                       FROM (SELECT r.started_at,
                                    jsonb_build_object('attempt', r.attempt, 'outcome', r.outcome, 'worker', r.worker_id,
                                                       'started_at', r.started_at, 'finished_at', r.finished_at,
                                                       'error', left(r.error, 500)) AS entry
                               FROM {schema}.job_runs r
                              WHERE r.job_id = h.id
                                AND r.started_at >= h.created_at - interval '1 minute'
                              ORDER BY r.started_at DESC
                              LIMIT 50) recent), '[]')
           || jsonb_build_array(jsonb_build_object('attempt', h.attempt, 'outcome', 'dead', 'worker', h.worker,
                                                   'started_at', h.started_at, 'finished_at', h.finished_at,
                                                   'error', left(h.error, 500)))
      FROM held h
     ORDER BY h.id
    RETURNING id, original_job_id
), run AS (
    INSERT INTO {schema}.job_runs (job_id, worker_id, started_at, finished_at, success, error, error_class, traceback, queue, job_type,
                                   attempt, outcome, priority, due_at, enqueued_at, replayed_from)
    SELECT id, worker, started_at, finished_at, false, error, error_class, traceback,
           queue, job_type, attempt, 'dead', priority, not_before, created_at, replayed_from
      FROM held
), counted AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, dead, duration_seconds, durations, waits)
    SELECT date_bin('5 seconds', max(finished_at), timestamptz '2000-01-01 00:00+00'), queue, job_type, coalesce(%(slot)s::int, 16 + (pg_backend_pid() & 8191)), count(*),
           sum(extract(epoch FROM finished_at - started_at)),
           {schema}.count_cells(array_agg(width_bucket(extract(epoch FROM finished_at - started_at)::double precision, {schema}.histogram_bounds()))),
           {schema}.count_cells(array_agg(width_bucket(extract(epoch FROM started_at - greatest(not_before, created_at))::double precision, {schema}.histogram_bounds())))
      FROM held
     GROUP BY queue, job_type
     ORDER BY queue, job_type
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET dead = s.dead + excluded.dead,
           duration_seconds = s.duration_seconds + excluded.duration_seconds,
           durations = {schema}.add_cells(s.durations, excluded.durations),
           waits = {schema}.add_cells(s.waits, excluded.waits)
)
SELECT id AS dead_letter_id, original_job_id AS job_id FROM letter
