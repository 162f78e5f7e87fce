-- A queue in trouble: 200,000 due jobs, 100,000 future ones of higher priority in front, 100,000 runs, many dead letters.
INSERT INTO workers (id, host, queues, job_types, concurrency, state, slot)
SELECT 'w' || n, 'host', '{q0,q1,default}', '{a,b}', 20, 'running', n % 16 FROM generate_series(1, 50) n;

INSERT INTO jobs (queue, payload, priority, not_before, idempotency_key)
SELECT CASE WHEN n % 10 = 0 THEN 'q' || n % 7 ELSE 'default' END,
       jsonb_build_object('type', CASE WHEN n % 3 = 0 THEN 'b' ELSE 'a' END, 'data', jsonb_build_object('n', n)),
       n % 5, now() - interval '1 hour' + n * interval '1 ms', CASE WHEN n % 20 = 0 THEN 'key-' || n END
  FROM generate_series(1, 200000) n;

INSERT INTO jobs (queue, payload, priority, not_before)
SELECT 'default', '{"type": "a"}', 100, now() + interval '1 hour' + n * interval '1 ms' FROM generate_series(1, 100000) n;

INSERT INTO jobs (queue, payload, status, locked_by, locked_at, claim_token)
SELECT 'default', '{"type": "a"}', 'running', 'w' || n % 50 + 1, now() - interval '1 min', n FROM generate_series(1, 1000) n;

-- Due, but not promoted yet; suspects; jobs whose budget was lowered by hand; keys whose window is over.
ALTER TABLE jobs DISABLE TRIGGER USER;
INSERT INTO jobs (queue, payload, status, not_before, suspect, attempts, max_attempts)
SELECT CASE WHEN n % 2 = 0 THEN 'default' ELSE 'q1' END, '{"type": "a"}',
       CASE WHEN n <= 50 THEN 'scheduled' ELSE 'pending' END, now() - interval '1 min', n BETWEEN 51 AND 60,
       CASE WHEN n > 60 THEN 5 ELSE 0 END, CASE WHEN n > 60 THEN 3 ELSE 5 END
  FROM generate_series(1, 80) n;
ALTER TABLE jobs ENABLE TRIGGER USER;
INSERT INTO job_keys (key, job_id, queue, payload_hash, expires_at)
SELECT 'old-' || n, n, 'default', '', CASE WHEN n <= 500 THEN now() - interval '1 h' ELSE now() + interval '1 h' END
  FROM generate_series(1, 20000) n;

INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, success, error, queue, job_type, attempt, outcome)
SELECT n / 2, 'w' || n % 50 + 1, now() - n * interval '200 ms', now() - n * interval '200 ms', n % 2 = 0,
       CASE WHEN n % 2 = 1 THEN 'boom' END, 'default', 'a', 1 + n % 2, CASE WHEN n % 2 = 1 THEN 'retried' ELSE 'succeeded' END
  FROM generate_series(1, 100000) n;

INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts, fingerprint, died_at, resolution, resolved_at)
SELECT 1000000 + n, 'q' || n % 7, '{"type": "a"}', 'boom ' || n, 5, md5((n % 40)::text), now() - n * interval '1 s',
       CASE WHEN n % 3 = 0 THEN 'discarded' END, CASE WHEN n % 3 = 0 THEN now() - interval '1 day' END
  FROM generate_series(1, 60000) n;

INSERT INTO job_stats (bucket, queue, job_type, slot, succeeded, durations, waits)
SELECT date_bin('5 seconds', now(), timestamptz '2000-01-01 00:00+00') - n * interval '5 s', 'default', 'a', 0, 10,
       count_cells('{3,4}'), count_cells('{3,4}')
  FROM generate_series(1, 10000) n;
