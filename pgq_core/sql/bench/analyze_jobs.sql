-- Autovacuum would do it a minute later; a benchmark does not wait.
VACUUM (ANALYZE) {schema}.jobs
