-- One pool's numbers, held until the end of the transaction.
SELECT host, name, wanted, minimum, maximum, state
  FROM {schema}.worker_pools
 WHERE host = %(host)s
   AND name = %(pool)s
   FOR UPDATE
