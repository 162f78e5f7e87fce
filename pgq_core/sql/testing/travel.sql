-- Moves due times, ends of leases and windows of keys into the past, as if the time had gone by. Answers how many jobs moved.
WITH moved AS (
    UPDATE {schema}.jobs
       SET not_before = not_before - %(span)s::interval
     WHERE locked_by IS NULL
    RETURNING id
), leased AS (
    UPDATE {schema}.jobs
       SET lease_until = lease_until - %(span)s::interval
     WHERE locked_by IS NOT NULL
       AND lease_until IS NOT NULL
), keys AS (
    UPDATE {schema}.job_keys
       SET expires_at = expires_at - %(span)s::interval
     WHERE expires_at < 'infinity'
)
SELECT count(*)::int
  FROM moved
