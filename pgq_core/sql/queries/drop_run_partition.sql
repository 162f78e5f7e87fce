-- Drops the oldest partition of job_runs past retention with the owner's rights, for a role that does not own the table.
-- Answers its name, or NULL. Gives up soon where somebody reads the table, since its lock stops those who finish jobs.
SELECT {schema}.drop_run_partition((now() AT TIME ZONE 'UTC' - %(kept)s::interval)::date)
