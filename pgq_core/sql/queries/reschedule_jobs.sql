-- Sends a batch of running jobs back: retried, snoozed (later), released or lost (at once, keeping their place). One closed run each.
-- Only jobs still running under the same claim. Rows are locked in id order, so that two batches cannot deadlock.
-- Rows are found from the batch's side, whatever the statistics say: after a vacuum of an empty table the planner took jobs for empty, and
-- a plain join went over all of it with all of the batch for each row (7 s for 100 jobs among 200,000). So the lock takes the rows one by
-- one, and the fates lie in arrays in the order of the ids, where a binary search tells the place of a row (`fates`).
-- `charge` is 1 when the attempt is spent; `loss` counts deaths of a worker that nobody saw; a suspect runs alone next time.
-- A job that was asked to stop meanwhile and has not succeeded ends as cancelled (retry_at NULL): the operator's word must not get lost.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(workers)s::text[], %(started)s::double precision[], %(finished)s::double precision[],
                  %(outcomes)s::text[], %(charges)s::int[], %(delays)s::double precision[], %(errors)s::text[], %(error_classes)s::text[],
                  %(tracebacks)s::text[], %(losses)s::int[], %(suspects)s::boolean[])
        AS t(id, token, worker, started, finished, outcome, charge, delay, error, error_class, traceback, loss, suspect)
), held AS MATERIALIZED (
    SELECT j.id, j.queue, j.job_type, j.attempts, j.priority, j.not_before, j.created_at, j.replayed_from,
           i.worker, coalesce(to_timestamp(i.started), j.locked_at) AS started_at, coalesce(to_timestamp(i.finished), now()) AS finished_at,
           CASE WHEN j.cancel_requested THEN 'cancelled' ELSE i.outcome END AS outcome, i.charge, make_interval(secs => i.delay) AS delay, i.error, i.error_class, i.traceback, i.loss, i.suspect
      FROM (SELECT * FROM input ORDER BY id) i
     CROSS JOIN LATERAL (
           SELECT id, queue, job_type, attempts, priority, not_before, created_at, replayed_from, locked_at, cancel_requested
             FROM {schema}.jobs
            WHERE id = i.id
              AND status = 'running'
              AND claim_token = i.token
              FOR UPDATE) j
), fates AS MATERIALIZED (
    SELECT array_agg(id ORDER BY id) AS ids, array_agg(charge ORDER BY id) AS charges, array_agg(delay ORDER BY id) AS delays,
           array_agg(error ORDER BY id) AS errors, array_agg(loss ORDER BY id) AS losses, array_agg(suspect ORDER BY id) AS suspects
      FROM held
     WHERE outcome <> 'cancelled'
), rescheduled AS (
    UPDATE {schema}.jobs j
       SET (status, not_before, attempts, losses, suspect, last_error) = (
           SELECT CASE WHEN now() + f.delays[place] > now() THEN 'scheduled' ELSE 'pending' END,
                  coalesce(now() + f.delays[place], j.not_before),
                  j.attempts + f.charges[place],
                  j.losses + f.losses[place],
                  f.suspects[place],
                  coalesce(f.errors[place], j.last_error)
             FROM fates f
            CROSS JOIN width_bucket(j.id, f.ids) AS place),
           has_runs = true,
           locked_by = NULL,
           locked_at = NULL,
           lease_until = NULL,
           cancel_requested = false
     WHERE j.id = ANY ((SELECT ids FROM fates)::bigint[])
    RETURNING j.id, j.not_before
), ended AS (
    DELETE FROM {schema}.jobs j
     WHERE j.id = ANY (ARRAY(SELECT id FROM held WHERE outcome = 'cancelled'))
    RETURNING j.id
), run AS (
    INSERT INTO {schema}.job_runs (job_id, worker_id, started_at, finished_at, success, error, error_class, traceback, queue, job_type,
                                   attempt, outcome, priority, due_at, enqueued_at, replayed_from)
    SELECT id, worker, started_at, finished_at, CASE WHEN outcome IN ('retried', 'lost') THEN false END, error, error_class, traceback,
           queue, job_type, attempts + 1, outcome, priority, not_before, created_at, replayed_from
      FROM held
), counted AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, retried, lost, released, snoozed, cancelled, duration_seconds, durations, waits)
    SELECT date_bin('5 seconds', max(finished_at), timestamptz '2000-01-01 00:00+00'), queue, job_type, coalesce(%(slot)s::int, 16 + (pg_backend_pid() & 8191)),
           count(*) FILTER (WHERE outcome = 'retried'),
           count(*) FILTER (WHERE outcome = 'lost'),
           count(*) FILTER (WHERE outcome = 'released'),
           count(*) FILTER (WHERE outcome = 'snoozed'),
           count(*) FILTER (WHERE outcome = 'cancelled'),
           sum(extract(epoch FROM finished_at - started_at)),
           {schema}.count_cells(array_agg(width_bucket(extract(epoch FROM finished_at - started_at)::double precision, {schema}.histogram_bounds()))),
           {schema}.count_cells(array_agg(width_bucket(extract(epoch FROM started_at - greatest(not_before, created_at))::double precision, {schema}.histogram_bounds())))
      FROM held
     GROUP BY queue, job_type
     ORDER BY queue, job_type
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET retried = s.retried + excluded.retried,
           lost = s.lost + excluded.lost,
           released = s.released + excluded.released,
           snoozed = s.snoozed + excluded.snoozed,
           cancelled = s.cancelled + excluded.cancelled,
           duration_seconds = s.duration_seconds + excluded.duration_seconds,
           durations = {schema}.add_cells(s.durations, excluded.durations),
           waits = {schema}.add_cells(s.waits, excluded.waits)
)
SELECT id, not_before AS retry_at FROM rescheduled
UNION ALL
SELECT id, NULL FROM ended
