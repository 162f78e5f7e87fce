-- Deletes idempotency keys whose window is over. A key that is taken over right now is locked and left alone.
DELETE FROM {schema}.job_keys
 WHERE key = ANY (ARRAY(
       SELECT key
         FROM {schema}.job_keys
        WHERE expires_at < now()
        ORDER BY expires_at
        LIMIT %(limit)s
          FOR UPDATE SKIP LOCKED))
   AND expires_at < now()
