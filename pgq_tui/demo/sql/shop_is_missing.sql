-- Whether this database never was a demo's.
SELECT to_regclass('shop.outbox') IS NULL
