-- The audit of operators below an id, newest first.
SELECT id, at, operator, action, target, reason, affected, refused, undo IS NOT NULL AS can_be_undone, undone_at, undone_by
  FROM {schema}.operations
 WHERE id < %(before)s
 ORDER BY id DESC
 LIMIT %(limit)s
