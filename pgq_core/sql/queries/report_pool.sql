-- How a pool does: state, why, when a worker is tried again, and the restarts since the last report.
UPDATE {schema}.worker_pools
   SET state = %(state)s,
       state_detail = %(detail)s,
       retry_at = now() + make_interval(secs => %(retry_in)s),
       restarts = restarts + %(restarts)s
 WHERE host = %(host)s
   AND name = %(name)s
