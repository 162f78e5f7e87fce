-- Claims up to `limit` due jobs of one queue for one worker: highest priority first, then due time, then id.
-- Looks in the given stretches of that order only, one after the other: where a worker knows that nothing lies in front of a position,
-- its claims do not walk again over the index entries of all the jobs that were claimed there before (see worker/frontier.py).
-- Locked in a materialised CTE, so that no plan can lock more rows than it returns. SKIP LOCKED: nobody waits for a claim.
-- Unless it is thorough, a claim passes over what SKIP LOCKED would pass over (xmax: who locked or changed a row last; the snapshot: who has
-- not ended) before it comes to a lock: where eight workers claim at once, most of their time went to asking the lock manager about each
-- other's rows. A number that several lockers share (a multixact) may be taken for somebody who has not ended: the thorough sweep finds that job.
-- The update finds its rows by an array of ids, and its guard is not the condition of a partial index: whatever the planner thinks of
-- LIMIT, or does not know of the table, that is the primary key, never a scan (68 ms for ten of 200,000 rows that nobody had analysed).
-- A pause holds for every claim that starts after it committed. A suspect (it was running when a worker died) is claimed alone, see claim_suspect_job.
-- `except_jobs`: their claim was refused a moment ago, by a trigger or a policy of somebody else; they must not stop all the others.
-- A worker takes hundreds at once, and leaves large data behind (an empty text, which no JSON is) until the job starts.
-- The token is new at each claim and guards every later write of it. Rows come in no order: whoever asked sorts them.
WITH claimable AS MATERIALIZED (
    SELECT ready.id
      FROM unnest(%(after_levels)s::bigint[], %(after_dues)s::double precision[], %(after_ids)s::bigint[],
                  %(until_levels)s::bigint[], %(until_dues)s::double precision[], %(until_ids)s::bigint[])
           AS stretch(after_level, after_due, after_id, until_level, until_due, until_id)
     CROSS JOIN LATERAL (
           SELECT id
             FROM {schema}.jobs
            WHERE queue = %(queue)s
              AND status = 'pending'
              AND ((-priority), not_before, id) > (stretch.after_level::int, to_timestamp(stretch.after_due), stretch.after_id)
              AND ((-priority), not_before, id) <= (stretch.until_level::int, to_timestamp(stretch.until_due), stretch.until_id)
              AND not_before <= now()
              AND NOT suspect
              AND (%(is_thorough)s
                   OR xmax = 0
                   OR (xmax <> ALL (ARRAY(SELECT xip::xid FROM pg_snapshot_xip(pg_current_snapshot()) AS xip))
                       AND age(xmax) > (SELECT age(pg_snapshot_xmax(pg_current_snapshot())::xid))))
              AND (%(job_types)s::text[] IS NULL OR job_type = ANY(%(job_types)s::text[]))
              AND id <> ALL (%(except_jobs)s::bigint[])
            ORDER BY (-priority), not_before, id
            LIMIT %(limit)s
              FOR UPDATE SKIP LOCKED) ready
     WHERE NOT EXISTS (SELECT FROM {schema}.queues WHERE name = %(queue)s AND paused)
     LIMIT %(limit)s
), token AS MATERIALIZED (
    SELECT nextval({token_sequence}) AS value
)
UPDATE {schema}.jobs j
   SET status = 'running',
       locked_by = %(worker_id)s,
       locked_at = now(),
       claim_token = (SELECT value FROM token),
       lease_until = now() + %(lease)s::interval,
       cancel_requested = false
 WHERE j.id = ANY (ARRAY(SELECT id FROM claimable))
   AND j.locked_by IS NULL
RETURNING id, queue, job_type,
          CASE WHEN %(lease)s::interval IS NULL
                    AND pg_column_size(payload) > 2000
                    AND (pg_column_size(payload) > 8000 OR pg_column_compression(payload) IS NOT NULL) THEN ''
               ELSE (payload -> 'data')::text END AS data, idempotency_key, priority, attempts, max_attempts,
          date_part('epoch', not_before) AS not_before, date_part('epoch', created_at) AS created_at,
          claim_token, timeout, losses, suspect, last_error, trace_context, origin_job_id, replayed_from,
          date_part('epoch', clock_timestamp()) AS claimed_at
