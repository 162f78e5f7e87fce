-- Sends a batch of running jobs back: retried, snoozed (later), released or lost (at once, keeping their place). One closed run each.
-- Only jobs still running under the same claim. Rows are locked in id order, so that two batches cannot deadlock.
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
      FROM {schema}.jobs j
      JOIN input i ON i.id = j.id
     WHERE j.status = 'running'
       AND j.claim_token = i.token
     ORDER BY j.id
       FOR UPDATE OF j
), rescheduled AS (
    UPDATE {schema}.jobs j
       SET status = CASE WHEN now() + h.delay > now() THEN 'scheduled' ELSE 'pending' END,
           not_before = CASE WHEN h.delay IS NULL THEN j.not_before ELSE now() + h.delay END,
           attempts = j.attempts + h.charge,
           losses = j.losses + h.loss,
           suspect = h.suspect,
           has_runs = true,
           last_error = coalesce(h.error, j.last_error),
           locked_by = NULL,
           locked_at = NULL,
           lease_until = NULL,
           cancel_requested = false
      FROM held h
     WHERE j.id = h.id
       AND h.outcome <> 'cancelled'
    RETURNING j.id, j.not_before
), ended AS (
    DELETE FROM {schema}.jobs j
     USING held h
     WHERE j.id = h.id
       AND h.outcome = 'cancelled'
    RETURNING j.id
), run AS (
    INSERT INTO {schema}.job_runs (job_id, worker_id, started_at, finished_at, success, error, error_class, traceback, queue, job_type,
                                   attempt, outcome, priority, due_at, enqueued_at, replayed_from)
    SELECT id, worker, started_at, finished_at, CASE WHEN outcome IN ('retried', 'lost') THEN false END, error, error_class, traceback,
           queue, job_type, attempts + 1, outcome, priority, not_before, created_at, replayed_from
      FROM held
), counted AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, retried, lost, released, snoozed, cancelled, duration_seconds, durations, waits)
    SELECT date_bin('5 seconds', max(finished_at), timestamptz '2000-01-01 00:00+00'), queue, job_type, %(slot)s,
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
