#!/bin/sh
# The same from a shell: prints an id, and the second time nothing.
set -eu

psql "$DATABASE_URL" --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 <<'SQL'
INSERT INTO jobs (queue, payload, idempotency_key)
VALUES ('default', '{"type": "send_email", "data": {"to": "c@example.org", "subject": "Hello"}}', 'shell-1')
ON CONFLICT (idempotency_key) DO NOTHING RETURNING id;
SQL
