-- Keeps the ids of a preview for the bulk verb that may follow, and drops a few of those that nobody came back for.
WITH expired AS (
    DELETE FROM {schema}.selections
     WHERE id = ANY (ARRAY(SELECT id FROM {schema}.selections WHERE expires_at < now() ORDER BY expires_at LIMIT 100))
)
INSERT INTO {schema}.selections (id, ids, created_by, expires_at)
VALUES (%(selection_id)s, %(ids)s::bigint[], %(operator)s, now() + %(lifetime)s::interval)
