-- The three tables in their first, smaller form. On a database that already holds them nothing changes here:
-- the next migrations turn them, with all their rows, into today's shape. One road for new and for adopted schemas.
-- compatible_from: 1
CREATE TABLE IF NOT EXISTS jobs (
    id              bigserial   PRIMARY KEY,
    queue           text        NOT NULL DEFAULT 'default',
    payload         jsonb       NOT NULL,
    idempotency_key text        UNIQUE,
    attempts        int         NOT NULL DEFAULT 0,
    max_attempts    int         NOT NULL DEFAULT 5,
    not_before      timestamptz NOT NULL DEFAULT now(),
    locked_by       text,
    locked_at       timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS dead_letter_jobs (
    id              bigserial   PRIMARY KEY,
    original_job_id bigint      NOT NULL,
    queue           text        NOT NULL,
    payload         jsonb       NOT NULL,
    last_error      text        NOT NULL,
    attempts        int         NOT NULL,
    died_at         timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS job_runs (
    id              bigserial   PRIMARY KEY,
    job_id          bigint      NOT NULL,
    worker_id       text        NOT NULL,
    started_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    success         boolean,
    error           text
);

-- A worker of the first form that still holds fresh locks would fight with ours over the same rows. It took its own
-- locks for stale after 30 seconds; so do we. Asked here before anything changes, and once more under the table's lock.
CREATE FUNCTION refuse_fresh_locks() RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS $$
DECLARE
    holders text;
BEGIN
    SELECT string_agg(DISTINCT locked_by, ', ') INTO holders
      FROM jobs
     WHERE locked_by IS NOT NULL
       AND locked_at > clock_timestamp() - interval '30 seconds';
    IF holders IS NOT NULL THEN
        RAISE EXCEPTION 'jobs are locked right now by %: stop these workers, then run migrate again', holders
            USING ERRCODE = 'PQ003';
    END IF;
END $$;

DO $$ BEGIN PERFORM refuse_fresh_locks(); END $$;
