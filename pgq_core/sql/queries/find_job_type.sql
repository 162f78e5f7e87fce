-- What workers announced about one type: its model and its defaults.
SELECT name, queue, model, max_attempts, timeout
  FROM {schema}.job_types
 WHERE name = %(name)s
