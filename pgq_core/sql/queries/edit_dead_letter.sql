-- Gives an unresolved dead letter another payload; the one it died with stays in original_payload. Answers what was there before.
WITH held AS MATERIALIZED (
    SELECT id, payload, original_payload
      FROM {schema}.dead_letter_jobs
     WHERE id = %(dead_letter_id)s
       AND resolution IS NULL
       FOR UPDATE
)
UPDATE {schema}.dead_letter_jobs d
   SET payload = %(payload)s::jsonb,
       original_payload = coalesce(h.original_payload, h.payload)
  FROM held h
 WHERE d.id = h.id
   AND d.resolution IS NULL
RETURNING d.id, h.payload::text AS payload, h.original_payload::text AS original_payload
