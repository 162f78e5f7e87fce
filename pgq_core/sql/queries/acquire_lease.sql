-- Takes or renews a duty; nobody else has it while it is not expired. One row when it is ours. `loops`: how the holder's loops do.
-- A lease that would last ten times as long as ours was taken before the server's clock was set back, and its holder may be gone.
INSERT INTO {schema}.leases AS l (name, holder, expires_at, renewed_at, loops)
VALUES (%(name)s, %(holder)s, clock_timestamp() + %(duration)s::interval, clock_timestamp(), %(loops)s::jsonb)
ON CONFLICT (name) DO UPDATE
   SET holder = excluded.holder,
       expires_at = excluded.expires_at,
       renewed_at = excluded.renewed_at,
       loops = excluded.loops
 WHERE l.holder = excluded.holder
    OR l.expires_at < clock_timestamp()
    OR l.expires_at > clock_timestamp() + 10 * %(duration)s::interval
RETURNING holder
