-- Partitions of job_runs from a day before the first to `days_ahead` days from now.
SELECT {schema}.ensure_run_partitions(coalesce(to_timestamp(%(from_epoch)s::double precision) AT TIME ZONE 'UTC', now() AT TIME ZONE 'UTC')::date - 1,
                                      (now() AT TIME ZONE 'UTC')::date + %(days_ahead)s::int)
