-- Everything that a live worker holds by the table's account. What it does not know of was claimed by a statement whose answer got lost.
SELECT id, claim_token
  FROM {schema}.jobs
 WHERE locked_by = %(worker_id)s
   AND status = 'running'
 ORDER BY id
 LIMIT 100000
