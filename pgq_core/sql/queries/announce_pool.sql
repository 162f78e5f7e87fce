-- Writes down what a host defines about one pool. An operator's wanted number is kept, as far as the host's limits allow.
INSERT INTO {schema}.worker_pools AS p (host, name, queues, concurrency, wanted, minimum, maximum, updated_by)
VALUES (%(host)s, %(name)s, %(queues)s::text[], %(concurrency)s, %(wanted)s, %(minimum)s, %(maximum)s, %(supervisor_id)s)
ON CONFLICT (host, name) DO UPDATE
   SET queues = excluded.queues,
       concurrency = excluded.concurrency,
       minimum = excluded.minimum,
       maximum = excluded.maximum,
       wanted = least(greatest(p.wanted, excluded.minimum), excluded.maximum),
       state = 'ok',
       state_detail = NULL,
       retry_at = NULL
