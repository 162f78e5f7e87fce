-- With a notification each: commits wait for each other, since a notification holds a lock of the whole cluster until it is synced.
\set n random(1, 1000000)
WITH inserted AS (INSERT INTO jobs (payload) VALUES (jsonb_build_object('n', :n::int)) RETURNING id)
SELECT pg_notify('jobs', 'default') FROM inserted;
