-- A worker's process is gone: how it ended and what it said last. One that was taken for lost before stays marked so.
WITH forgotten AS (
    DELETE FROM {schema}.worker_waits WHERE worker_id = %(worker_id)s
)
UPDATE {schema}.workers
   SET stopped_at = coalesce(stopped_at, now()),
       state = CASE WHEN state = 'lost' THEN state ELSE %(state)s END,
       exit_code = %(exit_code)s,
       exit_signal = %(exit_signal)s,
       exit_reason = %(exit_reason)s,
       last_output = coalesce(%(last_output)s, last_output),
       running = 0,
       finished = greatest(finished, %(finished)s),
       failed = greatest(failed, %(failed)s),
       late_writes = greatest(late_writes, %(late_writes)s)
 WHERE id = %(worker_id)s
