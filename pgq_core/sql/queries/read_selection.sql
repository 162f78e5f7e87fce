-- The ids of a preview, while it can still be used.
SELECT ids
  FROM {schema}.selections
 WHERE id = %(selection_id)s
   AND expires_at > now()
