SELECT count(*) FROM {schema}.workers WHERE state = 'running' AND stopped_at IS NULL
