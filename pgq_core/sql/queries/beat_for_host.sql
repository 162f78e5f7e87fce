-- Renews the lease on a host's pools. Only its holder's: 0 rows mean that another supervisor has taken over.
UPDATE {schema}.supervisors
   SET heartbeat_at = now(),
       stopping = %(stopping)s,
       loops = %(loops)s::jsonb
 WHERE host = %(host)s
   AND supervisor_id = %(supervisor_id)s
