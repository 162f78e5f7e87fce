-- Asks one live worker to drain, stop or restart; its keeper looks with each beat.
UPDATE {schema}.workers
   SET wanted = %(wanted)s
 WHERE id = %(worker_id)s
   AND stopped_at IS NULL
