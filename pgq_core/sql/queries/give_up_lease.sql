-- Lets the next one have a duty at once.
UPDATE {schema}.leases
   SET expires_at = '-infinity'
 WHERE name = %(name)s
   AND holder = %(holder)s
