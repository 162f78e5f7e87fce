-- The server's clock was set back: beats from what is the future now would keep dead workers alive until then. From now on they count
-- as beats of this moment; who lives beats again anyway. A second of room, since a beat may be younger than this transaction.
UPDATE {schema}.workers
   SET heartbeat_at = now()
 WHERE id = ANY (ARRAY(SELECT id
                         FROM {schema}.workers
                        WHERE stopped_at IS NULL
                          AND heartbeat_at > now() + interval '1 second'
                        ORDER BY id
                          FOR UPDATE SKIP LOCKED))
