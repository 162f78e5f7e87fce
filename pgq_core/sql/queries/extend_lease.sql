-- Renews the lease of one claimed job. Only while it runs under the same claim.
UPDATE {schema}.jobs
   SET lease_until = now() + %(lease)s::interval
 WHERE id = %(id)s
   AND status = 'running'
   AND claim_token = %(token)s
RETURNING lease_until, cancel_requested
