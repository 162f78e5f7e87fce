-- One worker's row, held until the end of the transaction.
SELECT id, state, wanted, stopped_at
  FROM {schema}.workers
 WHERE id = %(worker_id)s
   FOR UPDATE
