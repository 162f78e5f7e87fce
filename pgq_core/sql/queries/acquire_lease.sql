-- Takes or renews a duty; nobody else has it while it is not expired. One row when it is ours.
INSERT INTO {schema}.leases AS l (name, holder, expires_at)
VALUES (%(name)s, %(holder)s, clock_timestamp() + %(duration)s::interval)
ON CONFLICT (name) DO UPDATE
   SET holder = excluded.holder,
       expires_at = excluded.expires_at
 WHERE l.holder = excluded.holder
    OR l.expires_at < clock_timestamp()
RETURNING holder
