-- Tokens as people see them, live ones first; never a hash.
SELECT id, name, scopes, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at
  FROM {schema}.api_tokens
 ORDER BY revoked_at IS NOT NULL, name, id DESC
 LIMIT %(limit)s
