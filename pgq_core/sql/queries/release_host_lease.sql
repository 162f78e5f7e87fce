-- Gives the lease on a host's pools back. Only the holder's own row: a successor keeps its.
DELETE FROM {schema}.supervisors
 WHERE host = %(host)s
   AND supervisor_id = %(supervisor_id)s
