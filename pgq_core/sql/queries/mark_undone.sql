-- Writes down who took an action back, once.
UPDATE {schema}.operations
   SET undone_at = now(),
       undone_by = %(operator)s
 WHERE id = %(operation_id)s
   AND undone_at IS NULL
