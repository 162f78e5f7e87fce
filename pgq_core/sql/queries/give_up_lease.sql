-- Lets the next one have a duty at once.
UPDATE {schema}.leases
   SET expires_at = clock_timestamp() - interval '1 second'
 WHERE name = %(name)s
   AND holder = %(holder)s
