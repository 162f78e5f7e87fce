-- Who cancels or discards a job may leave its transaction open for as long as it likes. The statistics that it counts in stay locked that long,
-- and used to be those of a worker, which then could not write any outcome. Every session but a worker's has a slot of its own now.
-- compatible_from: 5
CREATE OR REPLACE FUNCTION close_unrun_job(job jobs, outcome text, error text) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    today date := (now() AT TIME ZONE 'UTC')::date;
BEGIN
    IF to_regclass('job_runs_' || to_char(today, 'YYYYMMDD')) IS NULL THEN
        PERFORM ensure_run_partitions(today, today);
    END IF;
    INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, queue, job_type, attempt, outcome, error, priority,
                          due_at, enqueued_at, replayed_from)
    VALUES (job.id, 'operator ' || current_user, now(), now(), job.queue, job.job_type, 0, close_unrun_job.outcome,
            close_unrun_job.error, job.priority, job.not_before, job.created_at, job.replayed_from);
    INSERT INTO job_stats AS s (bucket, queue, job_type, slot, cancelled, discarded, expired, durations, waits)
    VALUES (date_bin('5 seconds', now(), timestamptz '2000-01-01 00:00+00'), job.queue, job.job_type, 16 + (pg_backend_pid() & 8191),
            (close_unrun_job.outcome = 'cancelled')::int, (close_unrun_job.outcome = 'discarded')::int,
            (close_unrun_job.outcome = 'expired')::int, count_cells('{}'), count_cells('{}'))
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET cancelled = s.cancelled + excluded.cancelled,
           discarded = s.discarded + excluded.discarded,
           expired = s.expired + excluded.expired;
END $$;
