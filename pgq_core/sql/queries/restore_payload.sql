-- Takes an edit back: only of a letter that is unresolved (again).
UPDATE {schema}.dead_letter_jobs
   SET payload = %(payload)s::jsonb,
       original_payload = %(original_payload)s::jsonb
 WHERE id = %(dead_letter_id)s
   AND resolution IS NULL
