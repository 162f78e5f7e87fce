-- Marks rows of this host that the host itself does not define: who may write a table must not be able to run code on a host.
UPDATE {schema}.worker_pools
   SET state = 'refused',
       state_detail = %(detail)s,
       retry_at = NULL
 WHERE host = %(host)s
   AND NOT (name = ANY(%(defined)s::text[]))
   AND state <> 'refused'
RETURNING name
