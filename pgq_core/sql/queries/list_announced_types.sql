-- The defaults and the backoff that workers announced for their types, as far as they say anything.
SELECT name, queue, max_attempts, timeout, backoff_base, backoff_cap
  FROM {schema}.job_types
 ORDER BY announced_at DESC
 LIMIT %(limit)s
