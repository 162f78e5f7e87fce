-- Partitions of job_runs whose last day is past retention, detached leftovers of an interrupted drop included.
-- Never one in which a running job was claimed: its run has to find its place. No job in the tables is touched by this.
SELECT c.relname AS name, i.inhrelid IS NOT NULL AS is_attached, coalesce(i.inhdetachpending, false) AS is_detach_pending
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class parent ON parent.relnamespace = n.oid AND parent.relname = 'job_runs'
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = parent.oid
 CROSS JOIN LATERAL (
       SELECT CASE WHEN c.relname = 'job_runs_adopted'
                   THEN (SELECT value::date FROM {schema}.parameters WHERE name = 'runs_adopted_until')
                   ELSE to_date(right(c.relname, 8), 'YYYYMMDD') + 1 END::timestamp AT TIME ZONE 'UTC' AS upper) bound
 WHERE n.nspname = %(schema)s
   AND c.relkind = 'r'
   AND (c.relname ~ '^job_runs_[0-9]{{8}}$' OR c.relname = 'job_runs_adopted')
   AND bound.upper <= now() - %(kept)s::interval
   AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.locked_by IS NOT NULL AND j.locked_at < bound.upper)
 ORDER BY bound.upper
 LIMIT 100
