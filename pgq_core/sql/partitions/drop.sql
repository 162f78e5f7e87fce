-- Drops a partition that is no longer attached.
DROP TABLE IF EXISTS {schema}.{partition}
