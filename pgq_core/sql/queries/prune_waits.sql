-- Forgets sleepers that no longer live: each would cost every producer a notification.
DELETE FROM {schema}.worker_waits
 WHERE worker_id = ANY (ARRAY(
       SELECT s.worker_id
         FROM {schema}.worker_waits s
        WHERE NOT EXISTS (SELECT FROM {schema}.workers w WHERE w.id = s.worker_id AND w.stopped_at IS NULL)
        ORDER BY s.worker_id
          FOR UPDATE SKIP LOCKED))
