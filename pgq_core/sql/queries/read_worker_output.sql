-- The last lines that a worker wrote, as its keeper recorded them.
SELECT coalesce(last_output, '')
  FROM {schema}.workers
 WHERE id = %(worker_id)s
