-- A notification is a hint and must not end the transaction that gives it. The server keeps them in one queue for all its databases, which
-- somebody who listens and stays in a transaction lets fill up; then every commit with a notification fails. With half of it full nobody is
-- woken, and polling finds the jobs. (Asking for the share moves the end of the queue on as well, when the culprit is gone.)
-- compatible_from: 5
CREATE OR REPLACE FUNCTION jobs_wake_workers() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
BEGIN
    IF EXISTS (SELECT FROM worker_waits WHERE waiting) AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify(wake_channel(), 'jobs');
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION cancel(job_id bigint) RETURNS text
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
DECLARE
    job jobs;
BEGIN
    -- Locked first: between a DELETE of a job that does not run and an UPDATE of a running one it could change sides.
    SELECT * INTO job FROM jobs j WHERE j.id = cancel.job_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'not found';
    ELSIF job.status = 'running' THEN
        UPDATE jobs j SET cancel_requested = true WHERE j.id = job.id AND j.status = 'running';
        PERFORM pg_notify(wake_channel(), 'cancel') WHERE pg_notification_queue_usage() < 0.5;
        RETURN 'requested';
    END IF;
    DELETE FROM jobs j WHERE j.id = job.id AND j.status <> 'running';
    PERFORM close_unrun_job(job, 'cancelled', 'cancelled by ' || current_user);
    RETURN 'cancelled';
END $$;

CREATE OR REPLACE FUNCTION resume(queue text) RETURNS void
    LANGUAGE sql
    SET search_path FROM CURRENT
    AS $$
    UPDATE queues SET paused = false, paused_at = NULL, paused_by = NULL, pause_reason = NULL WHERE name = resume.queue;
    SELECT pg_notify(wake_channel(), 'jobs')
     WHERE EXISTS (SELECT FROM worker_waits WHERE waiting)
       AND pg_notification_queue_usage() < 0.5
$$;
