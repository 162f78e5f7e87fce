-- The window of idempotency keys, where the triggers on plain INSERTs can read it.
INSERT INTO {schema}.parameters AS p (name, value)
VALUES ('key_window', %(seconds)s::text)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE p.value <> excluded.value
