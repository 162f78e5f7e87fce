-- The live token with this hash, by the unique index of hashes.
SELECT id, name, scopes
  FROM {schema}.api_tokens
 WHERE hash = %(digest)s
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > now())
