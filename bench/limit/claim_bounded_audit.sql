-- The same, but each client starts its scan where its last claim ended: dead index entries are walked over once, not each time.
WITH claimable AS (
    SELECT priority, run_at, id FROM jobs
     WHERE queue = 'default' AND state = 0 AND run_at <= now()
       AND (priority, run_at, id) > (:priority::smallint, :run_at::timestamptz, :id::bigint)
     ORDER BY priority, run_at, id LIMIT :batch FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE jobs SET state = 1, attempt = attempt + 1, worker_id = :client_id FROM claimable WHERE jobs.id = claimable.id RETURNING jobs.id
), last AS (
    SELECT priority, run_at, id FROM claimable ORDER BY priority DESC, run_at DESC, id DESC LIMIT 1
)
SELECT coalesce((SELECT array_agg(id) FROM claimed), '{}')::text AS ids,
       coalesce((SELECT priority FROM last), :priority::smallint)::text AS priority,
       coalesce((SELECT run_at FROM last), :run_at::timestamptz)::text AS run_at,
       coalesce((SELECT id FROM last), :id::bigint)::text AS id \gset
WITH ended AS (
    DELETE FROM jobs WHERE id = ANY (:ids::bigint[]) AND worker_id = :client_id RETURNING id, attempt, worker_id
)
INSERT INTO job_runs SELECT id, attempt, worker_id, 1, now(), now() FROM ended;
