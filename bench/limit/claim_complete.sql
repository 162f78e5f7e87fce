-- A batch claimed, then deleted: two transactions, no audit.
WITH claimable AS (
    SELECT id FROM jobs WHERE queue = 'default' AND state = 0 AND run_at <= now()
     ORDER BY priority, run_at, id LIMIT :batch FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE jobs SET state = 1, attempt = attempt + 1, worker_id = :client_id FROM claimable WHERE jobs.id = claimable.id RETURNING jobs.id
)
SELECT coalesce(array_agg(id), '{}')::text AS ids FROM claimed \gset
DELETE FROM jobs WHERE id = ANY (:ids::bigint[]) AND worker_id = :client_id;
