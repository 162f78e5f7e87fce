-- Workers, pools, queues, statistics, the audit of operators, and the functions for callers that know only SQL.
-- compatible_from: 4

CREATE TABLE queues (
    name          text PRIMARY KEY,
    paused        boolean NOT NULL DEFAULT false,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT queue_has_a_name CHECK (name <> '' AND length(name) <= 200)
);

-- One row per process start, beaten for by its keeper. Narrow and apart from jobs, so that beats stay HOT updates.
CREATE TABLE workers (
    id            text PRIMARY KEY,
    host          text NOT NULL,
    pid           int,
    pool          text,
    supervisor_id text,
    queues        text[] NOT NULL,
    job_types     text[] NOT NULL DEFAULT '{}',
    concurrency   int NOT NULL,
    slot          smallint NOT NULL DEFAULT 0,
    state         text NOT NULL DEFAULT 'starting',
    wanted        text NOT NULL DEFAULT 'run',
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    stopped_at    timestamptz,
    exit_code     int,
    exit_signal   text,
    exit_reason   text,
    last_output   text,
    running       int NOT NULL DEFAULT 0,
    finished      bigint NOT NULL DEFAULT 0,
    failed        bigint NOT NULL DEFAULT 0,
    late_writes   bigint NOT NULL DEFAULT 0,
    cpu_percent   real,
    rss_bytes     bigint,
    version       text,
    CONSTRAINT worker_state CHECK (state IN ('starting', 'running', 'draining', 'stopped', 'crashed', 'lost')),
    CONSTRAINT worker_wanted CHECK (wanted IN ('run', 'drain', 'stop', 'restart'))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200);
CREATE INDEX workers_live_idx ON workers (host, pool) WHERE stopped_at IS NULL;

CREATE TABLE supervisors (
    host          text PRIMARY KEY,
    supervisor_id text NOT NULL,
    pid           int NOT NULL,
    pools         text[] NOT NULL DEFAULT '{}',
    version       text,
    started_at    timestamptz NOT NULL DEFAULT now(),
    heartbeat_at  timestamptz NOT NULL DEFAULT now(),
    stopping      boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);

-- Wanted state. What is executed comes only from the host's own file; here stand names and numbers.
CREATE TABLE worker_pools (
    host          text NOT NULL,
    name          text NOT NULL,
    queues        text[] NOT NULL,
    concurrency   int NOT NULL DEFAULT 1,
    wanted        int NOT NULL DEFAULT 1,
    minimum       int NOT NULL DEFAULT 0,
    maximum       int NOT NULL DEFAULT 64,
    state         text NOT NULL DEFAULT 'ok',
    state_detail  text,
    retry_at      timestamptz,
    restarts      int NOT NULL DEFAULT 0,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    updated_by    text,
    PRIMARY KEY (host, name),
    CONSTRAINT pool_numbers CHECK (minimum >= 0 AND maximum >= minimum AND wanted BETWEEN minimum AND maximum AND concurrency >= 1),
    CONSTRAINT pool_state CHECK (state IN ('ok', 'crash_loop', 'refused'))
) WITH (fillfactor = 50);

-- Who does a duty that one process is enough for (maintenance). A lease saves double work; correctness never rests on it.
CREATE TABLE leases (
    name          text PRIMARY KEY,
    holder        text NOT NULL,
    expires_at    timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What workers announced about each type they know.
CREATE TABLE job_types (
    name          text PRIMARY KEY,
    queue         text,
    model         jsonb,
    max_attempts  int,
    timeout       interval,
    backoff_base  interval NOT NULL DEFAULT '1 second',
    backoff_cap   interval NOT NULL DEFAULT '1 hour',
    announced_at  timestamptz NOT NULL DEFAULT now()
);

-- Written with each finish, summed by readers: no chart and no scrape ever counts rows of job_runs.
CREATE TABLE job_stats (
    bucket             timestamptz NOT NULL,
    queue              text NOT NULL,
    job_type           text NOT NULL,
    slot               smallint NOT NULL,
    succeeded          bigint NOT NULL DEFAULT 0,
    retried            bigint NOT NULL DEFAULT 0,
    dead               bigint NOT NULL DEFAULT 0,
    lost               bigint NOT NULL DEFAULT 0,
    released           bigint NOT NULL DEFAULT 0,
    snoozed            bigint NOT NULL DEFAULT 0,
    cancelled          bigint NOT NULL DEFAULT 0,
    discarded          bigint NOT NULL DEFAULT 0,
    expired            bigint NOT NULL DEFAULT 0,
    duration_seconds   double precision NOT NULL DEFAULT 0,
    durations          bigint[] NOT NULL,
    waits              bigint[] NOT NULL,
    PRIMARY KEY (bucket, queue, job_type, slot)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);

-- Upper bounds (seconds) of the histogram cells of job_stats: 1 ms, doubled 22 times; one more cell holds the rest.
CREATE FUNCTION histogram_bounds() RETURNS double precision[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN '{0.001,0.002,0.004,0.008,0.016,0.032,0.064,0.128,0.256,0.512,1.024,2.048,4.096,8.192,16.384,32.768,65.536,131.072,262.144,524.288,1048.576,2097.152,4194.304}'::double precision[];

CREATE FUNCTION add_cells(a bigint[], b bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY n) FROM unnest(a, b) WITH ORDINALITY AS t(x, y, n));

-- Cell counts of a list of cell numbers (0-based, as width_bucket gives them).
CREATE FUNCTION count_cells(cells int[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT array_agg(coalesce(n, 0) ORDER BY cell)
              FROM generate_series(0, 23) cell
              LEFT JOIN (SELECT c, count(*) AS n FROM unnest(cells) c GROUP BY c) counted ON counted.c = cell);

-- Every operator's action, with what is needed to undo it.
CREATE TABLE operations (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT now(),
    operator      text NOT NULL,
    action        text NOT NULL,
    target        text NOT NULL,
    reason        text,
    affected      bigint NOT NULL DEFAULT 0,
    refused       bigint NOT NULL DEFAULT 0,
    parameters    jsonb NOT NULL DEFAULT '{}',
    undo          jsonb,
    undone_at     timestamptz,
    undone_by     text
);
CREATE INDEX operations_at_idx ON operations (at);
