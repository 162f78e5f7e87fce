-- Deletes resolved dead letters past retention, a bounded batch a pass. Unresolved ones are never deleted.
DELETE FROM {schema}.dead_letter_jobs
 WHERE id = ANY (ARRAY(
       SELECT id
         FROM {schema}.dead_letter_jobs
        WHERE resolution IS NOT NULL
          AND resolved_at < now() - %(kept)s::interval
        ORDER BY resolved_at
        LIMIT %(limit)s
          FOR UPDATE SKIP LOCKED))
   AND resolution IS NOT NULL
