-- What a queue writes down from now on. A queue that nobody has set or paused before gets its row here.
INSERT INTO {schema}.queues (name, audit, audit_sample)
VALUES (%(queue)s, %(audit)s, %(sample)s)
ON CONFLICT (name) DO UPDATE
   SET audit = excluded.audit,
       audit_sample = excluded.audit_sample
