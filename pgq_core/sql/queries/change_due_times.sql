-- Gives jobs that do not run another due time; the trigger derives their status from it. Answers what it was before.
-- Running jobs and those held by flow control are left alone. Rows are locked in id order, and found
-- from the batch's side, see reschedule_jobs.
WITH held AS MATERIALIZED (
    SELECT id, status, not_before
      FROM {schema}.jobs
     WHERE id = ANY(%(ids)s::bigint[])
     ORDER BY id
       FOR UPDATE
), changed AS (
    UPDATE {schema}.jobs j
       SET not_before = coalesce(%(due)s::timestamptz, now())
     WHERE j.id = ANY (ARRAY(SELECT id FROM held WHERE status IN ('pending', 'scheduled')))
    RETURNING j.id
)
SELECT h.id, h.status, h.not_before
  FROM held h
 ORDER BY h.id
