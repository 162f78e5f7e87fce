-- Ends a batch of running jobs for good (succeeded, cancelled, discarded): out of jobs, one closed run each, statistics.
-- Outcomes, results and errors may be empty arrays: then all succeeded and said nothing.
-- A run without times of its own (the caller has no clock of the database) counts from its claim until now.
-- Only jobs still running under the same claim: a rescued job must not be finished by its old worker. Returns those that were.
-- A queue may keep less than all (queues.audit): a success that nothing else is written about leaves no run there, apart from the sampled
-- share of the ids. The shares are read once per statement; none as a rule, and then nothing else is looked at. Statistics count every run.
-- The ids ascend, so that a binary search tells the place of a row in the arrays. A join instead would be a loop over one of its sides, and
-- after a vacuum of an empty table the planner chose the wrong one: all of jobs, with all of the batch for each row.
WITH ended AS (
    DELETE FROM {schema}.jobs j
     WHERE j.id = ANY (%(ids)s::bigint[])
       AND j.status = 'running'
       AND j.claim_token = (%(tokens)s::bigint[])[width_bucket(j.id, %(ids)s::bigint[])]
    RETURNING j.id, j.queue, j.job_type, j.attempts, j.priority, j.not_before, j.created_at, j.replayed_from,
              coalesce((%(outcomes)s::text[])[width_bucket(j.id, %(ids)s::bigint[])], 'succeeded') AS outcome,
              (%(results)s::jsonb[])[width_bucket(j.id, %(ids)s::bigint[])] AS result,
              (%(errors)s::text[])[width_bucket(j.id, %(ids)s::bigint[])] AS error,
              coalesce((%(started)s::double precision[])[width_bucket(j.id, %(ids)s::bigint[])], date_part('epoch', j.locked_at)) AS started,
              coalesce((%(finished)s::double precision[])[width_bucket(j.id, %(ids)s::bigint[])], date_part('epoch', now())) AS finished,
              j.losses, j.has_runs, j.cancel_requested
), run AS (
    INSERT INTO {schema}.job_runs (job_id, worker_id, started_at, finished_at, success, error, queue, job_type, attempt, outcome,
                                   result, priority, due_at, enqueued_at, replayed_from)
    SELECT id, %(worker_id)s, to_timestamp(started), to_timestamp(finished), CASE WHEN outcome = 'succeeded' THEN true END, error,
           queue, job_type, attempts + 1, outcome, result, priority, not_before, created_at, replayed_from
      FROM ended e
     WHERE coalesce(hashint8(e.id) < ((SELECT jsonb_object_agg(name, CASE WHEN audit = 'sample' THEN audit_sample ELSE 0 END)
                                         FROM {schema}.queues
                                        WHERE audit <> 'all') ->> e.queue)::double precision * 4294967296 - 2147483648, true)
        OR e.outcome <> 'succeeded'
        OR e.result IS NOT NULL
        OR e.error IS NOT NULL
        OR e.attempts + e.losses > 0
        OR e.has_runs
        OR e.replayed_from IS NOT NULL
        OR e.cancel_requested
), counted AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, succeeded, cancelled, discarded, duration_seconds, durations, waits)
    SELECT date_bin('5 seconds', to_timestamp(max(finished)), timestamptz '2000-01-01 00:00+00'), queue, job_type, coalesce(%(slot)s::int, 16 + (pg_backend_pid() & 8191)),
           count(*) FILTER (WHERE outcome = 'succeeded'),
           count(*) FILTER (WHERE outcome = 'cancelled'),
           count(*) FILTER (WHERE outcome = 'discarded'),
           sum(finished - started),
           {schema}.count_cells(array_agg(width_bucket(finished - started, {schema}.histogram_bounds()))),
           {schema}.count_cells(array_agg(width_bucket(started - date_part('epoch', greatest(not_before, created_at)), {schema}.histogram_bounds())))
      FROM ended
     GROUP BY queue, job_type
     ORDER BY queue, job_type
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET succeeded = s.succeeded + excluded.succeeded,
           cancelled = s.cancelled + excluded.cancelled,
           discarded = s.discarded + excluded.discarded,
           duration_seconds = s.duration_seconds + excluded.duration_seconds,
           durations = {schema}.add_cells(s.durations, excluded.durations),
           waits = {schema}.add_cells(s.waits, excluded.waits)
)
SELECT id FROM ended
