-- Takes charge of a host's pools: where nobody has it, where the holder is stale, or where it is known to be dead (`dead_id`).
-- A living holder keeps it: no row comes back. (A beat that lies far ahead was made before the server's clock was set back.)
INSERT INTO {schema}.supervisors AS s (host, supervisor_id, pid, pools, version)
VALUES (%(host)s, %(supervisor_id)s, %(pid)s, %(pools)s::text[], %(version)s)
ON CONFLICT (host) DO UPDATE
   SET supervisor_id = excluded.supervisor_id,
       pid = excluded.pid,
       pools = excluded.pools,
       version = excluded.version,
       started_at = now(),
       heartbeat_at = now(),
       stopping = false
 WHERE s.heartbeat_at NOT BETWEEN now() - %(stale_limit)s::interval AND now() + %(stale_limit)s::interval
    OR s.supervisor_id = %(dead_id)s
    OR s.supervisor_id = excluded.supervisor_id
RETURNING s.supervisor_id
