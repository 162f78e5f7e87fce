-- Refused late writes of all time: of the workers that have a row, and of those whose row was pruned.
SELECT (coalesce((SELECT sum(late_writes) FROM {schema}.workers), 0)
        + coalesce((SELECT value FROM {schema}.counters WHERE name = 'late_writes'), 0))::bigint AS late_writes
