-- What a live worker holds by the table's account, of claims newer than a token. What it does not know of was claimed by a statement
-- whose answer got lost, or was given to it by hand. Bounded by the token, for where vacuum cannot clear the index of all that ran.
SELECT id, claim_token
  FROM {schema}.jobs
 WHERE locked_by = %(worker_id)s
   AND claim_token > %(after)s
   AND status = 'running'
 ORDER BY claim_token, id
 LIMIT 100000
