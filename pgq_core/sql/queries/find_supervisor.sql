-- Who is in charge of a host's pools, and whether it still beats.
SELECT host, supervisor_id, pid, started_at, heartbeat_at, stopping,
       heartbeat_at < now() - %(stale_limit)s::interval AS is_stale
  FROM {schema}.supervisors
 WHERE host = %(host)s
