-- The data of a job that a claim has left behind since it is large. Only while it runs under the same claim.
SELECT (payload -> 'data')::text AS data
  FROM {schema}.jobs
 WHERE id = %(id)s
   AND status = 'running'
   AND claim_token = %(token)s
