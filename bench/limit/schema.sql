-- What a queue that claims by SKIP LOCKED has to write, and nothing else.
SET client_min_messages = warning;
DROP TABLE IF EXISTS jobs, job_runs;
CREATE TABLE jobs (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue      text        NOT NULL DEFAULT 'default',
    kind       text        NOT NULL DEFAULT 'noop',
    priority   smallint    NOT NULL DEFAULT 0,
    state      smallint    NOT NULL DEFAULT 0,          -- 0 ready, 1 running
    attempt    smallint    NOT NULL DEFAULT 0,
    worker_id  integer,
    run_at     timestamptz NOT NULL DEFAULT now(),
    payload    jsonb       NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_ready ON jobs (queue, priority, run_at, id) WHERE state = 0;
-- The audit: one row a run, only ever added to, without an index.
CREATE TABLE job_runs (
    job_id      bigint      NOT NULL,
    attempt     smallint    NOT NULL,
    worker_id   integer,
    status      smallint    NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL
);
