-- Ends a detach that was interrupted.
ALTER TABLE {schema}.job_runs DETACH PARTITION {schema}.{partition} FINALIZE
