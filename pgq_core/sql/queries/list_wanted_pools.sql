-- The wanted numbers of a host's pools. A host has a handful.
SELECT name, wanted, state
  FROM {schema}.worker_pools
 WHERE host = %(host)s
 ORDER BY name
 LIMIT 1000
