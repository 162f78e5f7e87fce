-- Takes jobs that have been due and in the table for `after` (a due time may be given in the past) and whose type no worker has known
-- for as long, to be buried in the same transaction.
-- Only in queues that live workers serve: where nobody works, nothing is unknown. Bounded by the index: it hops over
-- (queue, priority) and reads only rows that are due so long, never the backlog. The guard of the update is not the condition of a
-- partial index: without statistics that would be read whole, instead of the primary key.
WITH RECURSIVE hop AS (
    (SELECT queue, -priority AS place FROM {schema}.jobs WHERE status = 'pending' ORDER BY queue, (-priority), not_before, id LIMIT 1)
    UNION ALL
    SELECT next.queue, next.place
      FROM hop
     CROSS JOIN LATERAL (
           SELECT queue, -priority AS place
             FROM {schema}.jobs
            WHERE status = 'pending'
              AND (queue, (-priority)) > (hop.queue, hop.place)
            ORDER BY queue, (-priority), not_before, id
            LIMIT 1) next
), claimable AS MATERIALIZED (
    SELECT j.id
      FROM hop
     CROSS JOIN LATERAL (
           SELECT id
             FROM {schema}.jobs
            WHERE status = 'pending'
              AND queue = hop.queue
              AND (-priority) = hop.place
              AND not_before < now() - %(after)s::interval
              AND created_at < now() - %(after)s::interval
              AND id <> ALL (%(except_jobs)s::bigint[])
              AND NOT EXISTS (SELECT FROM {schema}.job_types t WHERE t.name = job_type AND t.announced_at > now() - %(after)s::interval)
              AND NOT EXISTS (SELECT FROM {schema}.workers w WHERE w.stopped_at IS NULL AND job_type = ANY (w.job_types))
            ORDER BY not_before, id
            LIMIT %(limit)s
              FOR UPDATE SKIP LOCKED) j
     WHERE EXISTS (SELECT FROM {schema}.workers w
                    WHERE w.stopped_at IS NULL AND w.state <> 'starting' AND hop.queue = ANY (w.queues)
                      AND w.started_at < now() - least(interval '1 minute', %(after)s::interval))
     LIMIT %(limit)s
), token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
)
UPDATE {schema}.jobs j
   SET status = 'running',
       locked_by = %(holder)s,
       locked_at = now(),
       claim_token = (SELECT value FROM token),
       lease_until = now() + interval '1 minute'
 WHERE j.id = ANY (ARRAY(SELECT id FROM claimable))
   AND j.locked_by IS NULL
RETURNING j.id, j.claim_token, j.queue, j.job_type, j.last_error
