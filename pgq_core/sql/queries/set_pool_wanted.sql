-- Sets a pool's wanted number, within its bounds.
UPDATE {schema}.worker_pools
   SET wanted = %(wanted)s,
       updated_at = now(),
       updated_by = %(operator)s
 WHERE host = %(host)s
   AND name = %(pool)s
   AND %(wanted)s BETWEEN minimum AND maximum
