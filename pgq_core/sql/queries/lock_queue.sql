-- What operators said about one queue, held until the end of the transaction.
SELECT name, paused, paused_at, paused_by, pause_reason, audit, audit_sample
  FROM {schema}.queues
 WHERE name = %(queue)s
   FOR UPDATE
