-- Notes that a token is in use, to the minute: a busy client must not write a row with each request.
UPDATE {schema}.api_tokens
   SET last_used_at = now()
 WHERE id = %(token_id)s
   AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
