-- Running rows that somebody made by hand: without a token no write would ever match them, without a time their run would have no start.
UPDATE {schema}.jobs
   SET claim_token = coalesce(claim_token, nextval({token_sequence})),
       locked_at = coalesce(locked_at, now())
 WHERE id = ANY (%(ids)s::bigint[])
   AND status = 'running'
RETURNING id
