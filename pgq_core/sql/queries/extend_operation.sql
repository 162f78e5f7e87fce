-- Adds a further batch to an operator's action, in the transaction that carries the batch out.
UPDATE {schema}.operations
   SET affected = %(affected)s,
       refused = %(refused)s,
       undo = %(undo)s::jsonb
 WHERE id = %(operation_id)s
