-- Databases of benchmarks, by their prefix.
SELECT datname AS name FROM pg_database WHERE starts_with(datname, %(prefix)s) ORDER BY datname
