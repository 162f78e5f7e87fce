-- One operator's action with its parameters.
SELECT id, at, operator, action, target, reason, affected, refused, undo IS NOT NULL AS can_be_undone, undone_at, undone_by, parameters
  FROM {schema}.operations
 WHERE id = %(operation_id)s
