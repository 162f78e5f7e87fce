-- Jobs made by the server itself, as a plain SQL producer would: numbers `first` to `stop` - 1.
INSERT INTO {schema}.jobs (queue, payload, priority, not_before)
SELECT %(queue)s, jsonb_build_object('type', %(job_type)s::text, 'data', %(data)s::jsonb || jsonb_build_object('n', number)),
       %(priority)s, now() + %(delay)s::interval
  FROM generate_series(%(first)s::bigint, %(stop)s::bigint - 1) AS number
