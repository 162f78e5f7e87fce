-- Takes a token back for good. Only a live one: the first revocation is the one that is remembered.
UPDATE {schema}.api_tokens
   SET revoked_at = now(), revoked_by = %(operator)s
 WHERE name = %(name)s
   AND revoked_at IS NULL
RETURNING id
