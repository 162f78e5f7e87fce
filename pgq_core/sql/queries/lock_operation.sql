-- An operator's action with its undo data, held until the end of the transaction: only one undo at a time.
SELECT id, at, operator, action, target, undo, undone_at, undone_by
  FROM {schema}.operations
 WHERE id = %(operation_id)s
   FOR UPDATE
