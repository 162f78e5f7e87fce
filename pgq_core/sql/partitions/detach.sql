-- Takes a partition out of job_runs without blocking those who write or read the others. Outside a transaction.
ALTER TABLE {schema}.job_runs DETACH PARTITION {schema}.{partition} CONCURRENTLY
