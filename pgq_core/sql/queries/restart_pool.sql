-- Asks every live worker of a pool to be replaced, and lets a pool that stood still after crashes try again at once.
WITH woken AS (
    UPDATE {schema}.worker_pools
       SET state = 'ok', state_detail = NULL, retry_at = NULL, updated_at = now(), updated_by = %(operator)s
     WHERE host = %(host)s
       AND name = %(pool)s
       AND state IN ('ok', 'crash_loop')
)
UPDATE {schema}.workers
   SET wanted = 'restart'
 WHERE host = %(host)s
   AND pool = %(pool)s
   AND stopped_at IS NULL
   AND wanted = 'run'
RETURNING id
