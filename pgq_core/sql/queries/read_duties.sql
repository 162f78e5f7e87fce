-- Who does the duties that one process is enough for, and how its loops did when it last renewed the lease.
SELECT name, holder, expires_at < now() AS is_expired, loops,
       extract(epoch FROM now() - coalesce(renewed_at, expires_at))::double precision AS renewed_age
  FROM {schema}.leases
 ORDER BY name
 LIMIT 100
