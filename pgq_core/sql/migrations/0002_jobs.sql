-- Jobs, dead letters and runs in their full shape, and the rows of an adopted first form repaired on the way.
-- compatible_from: 2

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
    RETURN md5(queue || E'\x1f' || payload::text);

-- 1. Rows of a first form: nobody holds a fresh lock, and nobody can take one before we are done, so no run is going on.
LOCK TABLE jobs, dead_letter_jobs, job_runs IN ACCESS EXCLUSIVE MODE;
DO $$ BEGIN PERFORM refuse_fresh_locks(); END $$;
DROP FUNCTION refuse_fresh_locks();

UPDATE job_runs
   SET finished_at = now(),
       success = false,
       error = coalesce(error, 'lost: worker ' || worker_id || ' never ended this run')
 WHERE finished_at IS NULL;
UPDATE jobs SET locked_by = NULL, locked_at = NULL WHERE locked_by IS NOT NULL OR locked_at IS NOT NULL;
UPDATE jobs SET queue = CASE WHEN queue = '' THEN 'default' ELSE left(queue, 200) END WHERE queue = '' OR length(queue) > 200;
UPDATE dead_letter_jobs SET queue = CASE WHEN queue = '' THEN 'default' ELSE left(queue, 200) END WHERE queue = '' OR length(queue) > 200;
-- An empty key never meant one; an overlong one stays one of a kind by its hash, and readable as far as it goes.
UPDATE jobs
   SET idempotency_key = CASE WHEN idempotency_key <> '' THEN left(idempotency_key, 460) || '...' || md5(idempotency_key) END
 WHERE idempotency_key = '' OR length(idempotency_key) > 500;
UPDATE jobs SET attempts = 0 WHERE attempts < 0;
-- Times that no client can read (infinity, BC, beyond the year 9999): for ever stays for ever, everything else is now.
UPDATE jobs SET not_before = CASE WHEN not_before > now() THEN timestamptz '9999-01-01 00:00+00' ELSE now() END
 WHERE not_before < timestamptz '0001-01-02 00:00+00' OR not_before > timestamptz '9999-12-30 00:00+00';
UPDATE jobs SET created_at = now()
 WHERE created_at < timestamptz '0001-01-02 00:00+00' OR created_at > timestamptz '9999-12-30 00:00+00';
UPDATE dead_letter_jobs SET died_at = now()
 WHERE died_at < timestamptz '0001-01-02 00:00+00' OR died_at > timestamptz '9999-12-30 00:00+00';
UPDATE job_runs SET finished_at = now() WHERE finished_at < timestamptz '0001-01-02 00:00+00' OR finished_at > now() + interval '1 day';
UPDATE job_runs SET started_at = least(finished_at, now())
 WHERE started_at < timestamptz '0001-01-02 00:00+00' OR started_at > now() + interval '1 day';

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

-- Spent and unreadable jobs would neither run nor die in today's form. Their last error stands in their runs.
WITH gone AS (
    DELETE FROM jobs
     WHERE attempts >= max_attempts
        OR (jsonb_typeof(payload) = 'object' AND jsonb_typeof(payload -> 'type') = 'string'
            AND length(payload ->> 'type') BETWEEN 1 AND 200) IS NOT TRUE
    RETURNING id, queue, payload, attempts, max_attempts, idempotency_key, created_at
), last_failure AS (
    SELECT DISTINCT ON (job_id) job_id, error, worker_id
      FROM job_runs
     WHERE error IS NOT NULL
     ORDER BY job_id, started_at DESC, id DESC
)
INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, max_attempts, idempotency_key,
                              created_at, last_worker, reason)
SELECT g.id, g.queue, g.payload,
       CASE WHEN g.attempts < g.max_attempts THEN 'the payload is no object with a non-empty string "type" of at most 200 characters'
            ELSE coalesce(f.error, 'all ' || g.max_attempts || ' attempts were spent before this table was adopted') END,
       g.attempts, greatest(g.max_attempts, 1), g.idempotency_key, g.created_at, f.worker_id,
       CASE WHEN g.attempts < g.max_attempts THEN 'malformed' ELSE 'exhausted' END
  FROM gone g
  LEFT JOIN last_failure f ON f.job_id = g.id
 ORDER BY g.id;

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

-- What a type, a queue and the times may be: a row that a worker cannot read, or whose end cannot be counted, is refused
-- at the door. 200 characters: both names stand together in the key of job_stats, and an index row has 2,700 bytes.
ALTER TABLE jobs
    ADD CONSTRAINT payload_is_an_object_with_a_type CHECK (
        (jsonb_typeof(payload) = 'object' AND jsonb_typeof(payload -> 'type') = 'string' AND payload ->> 'type' <> '') IS TRUE),
    ADD CONSTRAINT job_type_length CHECK (length(payload ->> 'type') <= 200),
    ADD CONSTRAINT job_status CHECK (status IN ('pending', 'scheduled', 'waiting', 'running')),
    ADD CONSTRAINT job_running_has_an_owner CHECK ((status = 'running') = (locked_by IS NOT NULL)),
    ADD CONSTRAINT job_waits_for_something CHECK (status <> 'waiting' OR waiting_for IS NOT NULL),
    ADD CONSTRAINT job_priority_range CHECK (priority BETWEEN -32768 AND 32767),
    ADD CONSTRAINT job_attempts_range CHECK (attempts >= 0 AND max_attempts >= 1),
    ADD CONSTRAINT job_queue_has_a_name CHECK (queue <> '' AND length(queue) <= 200),
    ADD CONSTRAINT job_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 500),
    ADD CONSTRAINT job_timeout_range CHECK (timeout BETWEEN interval '0' AND interval '3660 days'),
    ADD CONSTRAINT job_not_before_is_finite CHECK (
        not_before BETWEEN timestamptz '0001-01-02 00:00+00' AND timestamptz '9999-12-30 00:00+00'),
    ADD CONSTRAINT job_created_at_is_finite CHECK (
        created_at BETWEEN timestamptz '0001-01-02 00:00+00' AND timestamptz '9999-12-30 00:00+00');

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

-- A bigserial becomes an identity column and goes on where it was, or behind the highest id that any table knows.
DO $$
DECLARE
    old_sequence text := pg_get_serial_sequence('jobs', 'id');
    next_id bigint;
BEGIN
    EXECUTE format('SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM %s', old_sequence) INTO next_id;
    next_id := 1 + greatest(next_id, (SELECT max(id) FROM jobs), (SELECT max(original_job_id) FROM dead_letter_jobs),
                            (SELECT max(job_id) FROM job_runs));
    ALTER TABLE jobs ALTER COLUMN id DROP DEFAULT;
    EXECUTE 'DROP SEQUENCE ' || old_sequence;
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
   SET attempt = numbered.attempt,
       outcome = CASE WHEN r.success THEN 'succeeded'
                      WHEN r.error LIKE 'lost:%' THEN 'lost'
                      WHEN numbered.is_last AND d.original_job_id IS NOT NULL THEN 'dead'
                      ELSE 'retried' END
  FROM (SELECT id, job_id, row_number() OVER story::int AS attempt, lead(id) OVER story IS NULL AS is_last
          FROM job_runs_adopted
        WINDOW story AS (PARTITION BY job_id ORDER BY started_at, id)) numbered
  LEFT JOIN (SELECT DISTINCT original_job_id FROM dead_letter_jobs) d ON d.original_job_id = numbered.job_id
 WHERE numbered.id = r.id;

-- The story of a dead letter outlives the partition of its runs, so the dead letter keeps a copy.
UPDATE dead_letter_jobs d
   SET attempt_log = story.log
  FROM (SELECT job_id,
               jsonb_agg(jsonb_build_object('attempt', attempt, 'outcome', outcome, 'worker', worker_id, 'started_at', started_at,
                                            'finished_at', finished_at, 'error', left(error, 500)) ORDER BY started_at, id) AS log
          FROM (SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY started_at DESC, id DESC) AS from_end
                  FROM job_runs_adopted
                 WHERE job_id IN (SELECT original_job_id FROM dead_letter_jobs)) recent
         WHERE from_end <= 50
         GROUP BY job_id) story
 WHERE story.job_id = d.original_job_id;

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

-- Partitions are made beside the table and then attached: a reader never blocks a finish for it. Days are days of UTC.
-- Owner's rights, so that a worker without the right to create tables can still make tomorrow's partition.
-- The lock lasts to the end of the transaction: call it in one of its own.
CREATE FUNCTION ensure_run_partitions(first_day date, last_day date) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    AS $$
DECLARE
    schema_name    text := (SELECT relnamespace::regnamespace FROM pg_class WHERE oid = 'job_runs'::regclass);
    adopted_until  date := (SELECT value::date FROM parameters
                             WHERE name = 'runs_adopted_until' AND to_regclass('job_runs_adopted') IS NOT NULL);
    day            date;
    partition      text;
    made           int := 0;
BEGIN
    IF first_day IS NULL OR last_day IS NULL OR NOT isfinite(first_day) OR NOT isfinite(last_day) THEN
        RAISE EXCEPTION 'partitions of job_runs are made from one day to another, not from % to %', first_day, last_day
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock('job_runs'::regclass::oid::bigint);
    FOR day IN SELECT generate_series(first_day, least(last_day, first_day + 60), interval '1 day')::date LOOP
        CONTINUE WHEN day < adopted_until;  -- the oldest partition, an adopted table, reaches into this day
        partition := format('%s.job_runs_%s', schema_name, to_char(day, 'YYYYMMDD'));
        CONTINUE WHEN EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(partition));
        IF to_regclass(partition) IS NULL THEN
            EXECUTE format('CREATE TABLE %s (LIKE job_runs INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
        END IF;
        EXECUTE format('ALTER TABLE job_runs ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)', partition,
                       to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00', to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00');
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION ensure_run_partitions(date, date) FROM PUBLIC;

-- The other half, for a role that does not own the tables: drops the oldest day of runs that ended before `before`, answers
-- its name, or NULL. At most one a call and with a short wait, since finishes stand still while the parent table is locked.
-- Never today's or yesterday's, nor one that a running job will want at its end.
CREATE FUNCTION drop_run_partition(before date) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    SET lock_timeout TO '100ms'
    AS $$
DECLARE
    oldest record;
BEGIN
    SELECT c.oid::regclass::text AS name, d.until INTO oldest
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
     CROSS JOIN LATERAL (SELECT CASE WHEN c.relname = 'job_runs_adopted'
                                     THEN (SELECT value::date FROM parameters WHERE name = 'runs_adopted_until')
                                     WHEN c.relname ~ '^job_runs_[0-9]{8}$' THEN to_date(right(c.relname, 8), 'YYYYMMDD') + 1
                                 END AS until) d
     WHERE i.inhparent = 'job_runs'::regclass
       AND d.until <= least(drop_run_partition.before, (now() AT TIME ZONE 'UTC')::date - 1)
       AND NOT EXISTS (SELECT FROM jobs WHERE locked_by IS NOT NULL AND locked_at < d.until::timestamp AT TIME ZONE 'UTC')
     ORDER BY d.until
     LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    EXECUTE 'DROP TABLE ' || oldest.name;
    RETURN oldest.name;
END $$;
REVOKE ALL ON FUNCTION drop_run_partition(date) FROM PUBLIC;

DO $$
DECLARE
    today         date := (now() AT TIME ZONE 'UTC')::date;
    latest        timestamptz := (SELECT max(started_at) FROM job_runs_adopted);
    adopted_until date := greatest(today, (latest AT TIME ZONE 'UTC')::date) + 1;
BEGIN
    IF latest IS NULL THEN
        DROP TABLE job_runs_adopted;
    ELSE
        INSERT INTO parameters (name, value) VALUES ('runs_adopted_until', to_char(adopted_until, 'YYYY-MM-DD'));
        EXECUTE format('ALTER TABLE job_runs ATTACH PARTITION job_runs_adopted FOR VALUES FROM (MINVALUE) TO (%L)',
                       to_char(adopted_until, 'YYYY-MM-DD') || ' 00:00:00+00');
    END IF;
    PERFORM ensure_run_partitions(today - 1, today + 7);
END $$;
