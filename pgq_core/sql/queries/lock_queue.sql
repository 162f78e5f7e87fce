-- The pause of one queue, held until the end of the transaction.
SELECT name, paused, paused_at, paused_by, pause_reason
  FROM {schema}.queues
 WHERE name = %(queue)s
   FOR UPDATE
