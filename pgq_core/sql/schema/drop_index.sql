-- An index whose concurrent build was interrupted is left invalid, and IF NOT EXISTS would take it for done.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.{index}
