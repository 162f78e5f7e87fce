CREATE TABLE IF NOT EXISTS jobs (
    id              BIGSERIAL PRIMARY KEY,
    queue           TEXT        NOT NULL DEFAULT 'default',
    payload         JSONB       NOT NULL,
    idempotency_key TEXT        UNIQUE,
    attempts        INT         NOT NULL DEFAULT 0,
    max_attempts    INT         NOT NULL DEFAULT 5,
    not_before      TIMESTAMPTZ NOT NULL DEFAULT now(),
    locked_by       TEXT,
    locked_at       TIMESTAMPTZ,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE INDEX IF NOT EXISTS jobs_ready_idx
    ON jobs (queue, not_before)
    WHERE locked_by IS NULL;

CREATE TABLE IF NOT EXISTS dead_letter_jobs (
    id              BIGSERIAL PRIMARY KEY,
    original_job_id BIGINT      NOT NULL,
    queue           TEXT        NOT NULL,
    payload         JSONB       NOT NULL,
    last_error      TEXT        NOT NULL,
    attempts        INT         NOT NULL,
    died_at         TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS job_runs (
    id          BIGSERIAL PRIMARY KEY,
    job_id      BIGINT      NOT NULL,
    worker_id   TEXT        NOT NULL,
    started_at  TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    success     BOOLEAN,
    error       TEXT
);
