-- What workers know about each type: its model, its defaults, its backoff. In name order, so that two workers cannot deadlock.
INSERT INTO {schema}.job_types AS t (name, queue, model, max_attempts, timeout, backoff_base, backoff_cap, announced_at)
SELECT name, queue, model, max_attempts, timeout, backoff_base, backoff_cap, now()
  FROM unnest(%(names)s::text[], %(queues)s::text[], %(models)s::jsonb[], %(max_attempts)s::int[], %(timeouts)s::interval[],
              %(backoff_bases)s::interval[], %(backoff_caps)s::interval[])
    AS given(name, queue, model, max_attempts, timeout, backoff_base, backoff_cap)
 ORDER BY name
ON CONFLICT (name) DO UPDATE
   SET queue = excluded.queue,
       model = excluded.model,
       max_attempts = excluded.max_attempts,
       timeout = excluded.timeout,
       backoff_base = excluded.backoff_base,
       backoff_cap = excluded.backoff_cap,
       announced_at = excluded.announced_at
