-- Jobs, dead letters and runs in their full shape, and the rows of an adopted first form repaired on the way.
-- compatible_from: 1

-- Values that plain SQL may have to know, kept where a trigger can read them (seconds as text, see the docs).
CREATE TABLE parameters (
    name        text PRIMARY KEY,
    value       text NOT NULL
);
INSERT INTO parameters (name, value) VALUES ('key_window', '86400');

CREATE FUNCTION key_window() RETURNS interval
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path FROM CURRENT
    AS $$ SELECT make_interval(secs => coalesce((SELECT value::double precision FROM parameters WHERE name = 'key_window'), 86400)) $$;

CREATE FUNCTION payload_fingerprint(queue text, payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT md5(queue || E'\x1f' || payload::text) $$;

-- 1. Rows of a first form: nobody holds a fresh lock (checked before), so no run is going on.
UPDATE job_runs
   SET finished_at = now(),
       success = false,
       error = coalesce(error, 'lost: worker ' || worker_id || ' never ended this run')
 WHERE finished_at IS NULL;
UPDATE jobs SET locked_by = NULL, locked_at = NULL WHERE locked_by IS NOT NULL OR locked_at IS NOT NULL;
UPDATE jobs SET queue = 'default' WHERE queue = '';
UPDATE jobs SET not_before = CASE WHEN not_before > now() THEN timestamptz '9999-01-01 00:00+00' ELSE now() END
 WHERE NOT isfinite(not_before);

-- 2. Dead letters: all that a replay or a triage needs.
ALTER TABLE dead_letter_jobs
    ADD COLUMN job_type          text GENERATED ALWAYS AS (payload ->> 'type') STORED,
    ADD COLUMN priority          int NOT NULL DEFAULT 0,
    ADD COLUMN max_attempts      int NOT NULL DEFAULT 5,
    ADD COLUMN idempotency_key   text,
    ADD COLUMN created_at        timestamptz,
    ADD COLUMN timeout           interval,
    ADD COLUMN reason            text NOT NULL DEFAULT 'exhausted',
    ADD COLUMN error_class       text,
    ADD COLUMN traceback         text,
    ADD COLUMN fingerprint       text,
    ADD COLUMN last_worker       text,
    ADD COLUMN attempt_log       jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN origin_job_id     bigint,
    ADD COLUMN replayed_from     bigint,
    ADD COLUMN trace_context     jsonb,
    ADD COLUMN resolution        text,
    ADD COLUMN resolved_at       timestamptz,
    ADD COLUMN resolved_by       text,
    ADD COLUMN replayed_job_id   bigint,
    ADD COLUMN note              text,
    ADD COLUMN original_payload  jsonb,
    ADD CONSTRAINT dead_letter_reason CHECK (reason IN ('exhausted', 'non_retryable', 'timeout', 'crash_loop',
                                             'unknown_type', 'malformed', 'expired', 'operator')),
    ADD CONSTRAINT dead_letter_resolution CHECK (resolution IN ('replayed', 'discarded')),
    ADD CONSTRAINT dead_letter_resolved_has_a_time CHECK ((resolution IS NULL) = (resolved_at IS NULL));

INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, max_attempts, idempotency_key,
                              created_at, reason)
SELECT id, queue, payload,
       CASE WHEN attempts >= max_attempts
            THEN 'all ' || max_attempts || ' attempts were spent before this table was adopted'
            ELSE 'the payload is no object with a non-empty string "type"' END,
       attempts, greatest(max_attempts, 1), idempotency_key, created_at,
       CASE WHEN attempts >= max_attempts THEN 'exhausted' ELSE 'malformed' END
  FROM jobs
 WHERE attempts >= max_attempts
    OR (jsonb_typeof(payload) = 'object' AND jsonb_typeof(payload -> 'type') = 'string'
        AND payload ->> 'type' <> '') IS NOT TRUE
 ORDER BY id;
DELETE FROM jobs j USING dead_letter_jobs d WHERE d.original_job_id = j.id AND (d.reason = 'malformed' OR j.attempts >= j.max_attempts);

-- A job of the first form that had died left its last error only; keep it readable by the same columns.
UPDATE dead_letter_jobs SET origin_job_id = original_job_id WHERE origin_job_id IS NULL;

-- 3. Jobs: narrow, hot, small. A row leaves when it reaches a final outcome.
DROP INDEX IF EXISTS jobs_ready_idx;
ALTER TABLE jobs
    ADD COLUMN job_type          text GENERATED ALWAYS AS (payload ->> 'type') STORED,
    ADD COLUMN priority          int NOT NULL DEFAULT 0,
    ADD COLUMN status            text NOT NULL DEFAULT 'pending',
    ADD COLUMN claim_token       bigint,
    ADD COLUMN lease_until       timestamptz,
    ADD COLUMN timeout           interval,
    ADD COLUMN last_error        text,
    ADD COLUMN losses            int NOT NULL DEFAULT 0,
    ADD COLUMN suspect           boolean NOT NULL DEFAULT false,
    ADD COLUMN cancel_requested  boolean NOT NULL DEFAULT false,
    ADD COLUMN waiting_for       text,
    ADD COLUMN fairness_key      text,
    ADD COLUMN trace_context     jsonb,
    ADD COLUMN origin_job_id     bigint,
    ADD COLUMN replayed_from     bigint;

UPDATE jobs SET status = 'scheduled' WHERE not_before > now();

ALTER TABLE jobs
    ADD CONSTRAINT payload_is_an_object_with_a_type CHECK (
        (jsonb_typeof(payload) = 'object' AND jsonb_typeof(payload -> 'type') = 'string' AND payload ->> 'type' <> '') IS TRUE),
    ADD CONSTRAINT job_status CHECK (status IN ('pending', 'scheduled', 'waiting', 'running')),
    ADD CONSTRAINT job_running_has_an_owner CHECK ((status = 'running') = (locked_by IS NOT NULL)),
    ADD CONSTRAINT job_priority_range CHECK (priority BETWEEN -32768 AND 32767),
    ADD CONSTRAINT job_attempts_range CHECK (attempts >= 0 AND max_attempts >= 1),
    ADD CONSTRAINT job_queue_has_a_name CHECK (queue <> '' AND length(queue) <= 200),
    ADD CONSTRAINT job_not_before_is_finite CHECK (isfinite(not_before));

ALTER TABLE jobs SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
                      autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);

-- The claim index: exact order inside one queue. (-priority), since a plain DESC column cannot bound a row comparison.
CREATE INDEX jobs_ready_idx ON jobs (queue, (-priority), not_before, id) WHERE status = 'pending';
CREATE INDEX jobs_scheduled_idx ON jobs (queue, not_before, id) WHERE status = 'scheduled';
CREATE INDEX jobs_waiting_idx ON jobs (queue, waiting_for, id) WHERE status = 'waiting';
-- Its condition is not the guard of the finishing statements (status = 'running'): they have to go by primary key, row by row.
CREATE INDEX jobs_running_idx ON jobs (locked_by, id) WHERE locked_by IS NOT NULL;
CREATE INDEX jobs_suspect_idx ON jobs (queue, id) WHERE suspect;
-- Nearly always empty: jobs whose budget was lowered by hand below what they have spent.
CREATE INDEX jobs_spent_idx ON jobs (id) WHERE attempts >= max_attempts;

-- A bigserial becomes an identity column and goes on where it was.
DO $$
DECLARE
    next_id bigint;
BEGIN
    SELECT greatest(coalesce((SELECT max(id) FROM jobs), 0), coalesce((SELECT max(original_job_id) FROM dead_letter_jobs), 0),
                    coalesce((SELECT max(job_id) FROM job_runs), 0),
                    CASE WHEN s.is_called THEN s.last_value ELSE 0 END) + 1
      INTO next_id
      FROM jobs_id_seq s;
    ALTER TABLE jobs ALTER COLUMN id DROP DEFAULT;
    DROP SEQUENCE jobs_id_seq;
    EXECUTE format('ALTER TABLE jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (START WITH %s)', next_id);
END $$;

-- One number per claim statement, never reused: what every later write of that claim is guarded by.
CREATE SEQUENCE claim_token_seq AS bigint CACHE 32;

CREATE INDEX dead_letter_jobs_unresolved_idx ON dead_letter_jobs (id) WHERE resolution IS NULL;
CREATE INDEX dead_letter_jobs_group_idx ON dead_letter_jobs (fingerprint, id) WHERE resolution IS NULL;
CREATE INDEX dead_letter_jobs_queue_idx ON dead_letter_jobs (queue, id) WHERE resolution IS NULL;
CREATE INDEX dead_letter_jobs_original_idx ON dead_letter_jobs (original_job_id);
CREATE INDEX dead_letter_jobs_resolved_idx ON dead_letter_jobs (resolved_at) WHERE resolution IS NOT NULL;

CREATE VIEW dead_jobs AS
    SELECT id, original_job_id, queue, job_type, payload, last_error, error_class, reason, attempts, max_attempts, priority,
           idempotency_key, fingerprint, last_worker, created_at, died_at
      FROM dead_letter_jobs
     WHERE resolution IS NULL;

-- 4. Runs: one closed row per attempt, partitioned by the day it started.
UPDATE job_runs SET started_at = CASE WHEN isfinite(finished_at) THEN least(finished_at, now()) ELSE now() END WHERE NOT isfinite(started_at);
ALTER TABLE job_runs RENAME TO job_runs_adopted;
ALTER TABLE job_runs_adopted RENAME CONSTRAINT job_runs_pkey TO job_runs_adopted_pkey;
ALTER TABLE job_runs_adopted
    ALTER COLUMN finished_at SET NOT NULL,
    ADD COLUMN queue         text,
    ADD COLUMN job_type      text,
    ADD COLUMN attempt       int NOT NULL DEFAULT 0,
    ADD COLUMN outcome       text NOT NULL DEFAULT 'succeeded',
    ADD COLUMN error_class   text,
    ADD COLUMN traceback     text,
    ADD COLUMN result        jsonb,
    ADD COLUMN priority      int NOT NULL DEFAULT 0,
    ADD COLUMN due_at        timestamptz,
    ADD COLUMN enqueued_at   timestamptz,
    ADD COLUMN replayed_from bigint;
UPDATE job_runs_adopted r
   SET outcome = CASE WHEN success THEN 'succeeded' WHEN error LIKE 'lost:%' THEN 'lost' ELSE 'retried' END,
       attempt = numbered.attempt
  FROM (SELECT id, row_number() OVER (PARTITION BY job_id ORDER BY started_at, id)::int AS attempt FROM job_runs_adopted) numbered
 WHERE numbered.id = r.id;

CREATE TABLE job_runs (
    id            bigint      NOT NULL DEFAULT nextval('job_runs_id_seq'),
    job_id        bigint      NOT NULL,
    worker_id     text        NOT NULL,
    started_at    timestamptz NOT NULL,
    finished_at   timestamptz NOT NULL,
    success       boolean,
    error         text,
    queue         text,
    job_type      text,
    attempt       int         NOT NULL DEFAULT 0,
    outcome       text        NOT NULL DEFAULT 'succeeded',
    error_class   text,
    traceback     text,
    result        jsonb,
    priority      int         NOT NULL DEFAULT 0,
    due_at        timestamptz,
    enqueued_at   timestamptz,
    replayed_from bigint
) PARTITION BY RANGE (started_at);
ALTER SEQUENCE job_runs_id_seq OWNED BY job_runs.id;
CREATE INDEX job_runs_job_idx ON job_runs (job_id);
CREATE INDEX job_runs_tail_idx ON job_runs (id);

-- Partitions are made beside the table and then attached: a reader never blocks a finish for it.
-- Owner's rights, so that a worker without the right to create tables can still make tomorrow's partition.
CREATE FUNCTION ensure_run_partitions(first_day date, last_day date) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    day date;
    partition_name text;
    made int := 0;
    schema_name text := (SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
                          WHERE c.oid = 'job_runs'::regclass);
    bounds text;
BEGIN
    PERFORM pg_advisory_xact_lock('job_runs'::regclass::oid::bigint);
    FOR day IN SELECT generate_series(first_day, least(last_day, first_day + 60), interval '1 day')::date LOOP
        partition_name := 'job_runs_' || to_char(day, 'YYYYMMDD');
        bounds := format('FOR VALUES FROM (%L) TO (%L)', day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
        CONTINUE WHEN to_regclass(format('%I.%I', schema_name, partition_name)) IS NOT NULL;
        CONTINUE WHEN EXISTS (     -- the oldest partition, an adopted table, may reach into this day
            SELECT FROM parameters WHERE name = 'runs_adopted_until' AND value::date > day);
        EXECUTE format('CREATE TABLE %I.%I (LIKE %I.job_runs INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', schema_name, partition_name, schema_name);
        EXECUTE format('ALTER TABLE %I.job_runs ATTACH PARTITION %I.%I %s', schema_name, schema_name, partition_name, bounds);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION ensure_run_partitions(date, date) FROM PUBLIC;

DO $$
DECLARE
    adopted_until date := ((now() AT TIME ZONE 'UTC')::date) + 1;
    latest timestamptz := (SELECT max(started_at) FROM job_runs_adopted);
BEGIN
    IF latest IS NULL THEN
        DROP TABLE job_runs_adopted;
    ELSE
        adopted_until := greatest(adopted_until, (latest AT TIME ZONE 'UTC')::date + 1);
        INSERT INTO parameters (name, value) VALUES ('runs_adopted_until', adopted_until::text);
        EXECUTE format('ALTER TABLE job_runs ATTACH PARTITION job_runs_adopted FOR VALUES FROM (MINVALUE) TO (%L)',
                       adopted_until::text || ' 00:00:00+00');
    END IF;
    PERFORM ensure_run_partitions((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + 7);
END $$;
