-- The same by the database itself, with the extension pg_cron: one job per tick, also when the schedule exists twice.
SELECT cron.schedule('nightly-report', '0 3 * * *', $$
    SELECT pgq_core.enqueue('nightly_report', '{"days": 1}',
                            idempotency_key => 'nightly-report-' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'))
$$);
