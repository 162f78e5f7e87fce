-- Keeps a new token's hash. No row: a live token has this name already.
INSERT INTO {schema}.api_tokens (name, hash, scopes, created_by, expires_at)
VALUES (%(name)s, %(digest)s, %(scopes)s::text[], %(operator)s, now() + %(lifetime)s::interval)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING id
