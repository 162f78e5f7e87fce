-- About how many rows lie in each state, for queues too deep to count: what the planner knows of the partial indexes,
-- stretched by how much they have grown since, and of how the queues share the table. No row is read.
WITH sizes AS (
    SELECT c.relname,
           CASE WHEN c.relpages > 0 AND c.reltuples > 0
                THEN c.reltuples * (pg_relation_size(c.oid) / current_setting('block_size')::bigint) / c.relpages
                ELSE 0 END AS tuples
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = %(schema_name)s
       AND c.relname IN ('jobs_ready_idx', 'jobs_scheduled_idx', 'jobs_waiting_idx', 'dead_letter_jobs_queue_idx')
), states AS (
    SELECT *
      FROM (VALUES ('pending', 'jobs', 'jobs_ready_idx'), ('scheduled', 'jobs', 'jobs_scheduled_idx'),
                   ('waiting', 'jobs', 'jobs_waiting_idx'), ('dead', 'dead_letter_jobs', 'dead_letter_jobs_queue_idx'))
        AS t(state, table_name, index_name)
)
SELECT s.state, sizes.tuples::bigint AS total,
       coalesce(shares.names, '{{}}') AS queues, coalesce(shares.shares, '{{}}') AS shares
  FROM states s
  JOIN sizes ON sizes.relname = s.index_name
  LEFT JOIN LATERAL (
    SELECT p.most_common_vals::text::text[] AS names, p.most_common_freqs::double precision[] AS shares
      FROM pg_stats p
     WHERE p.schemaname = %(schema_name)s
       AND p.tablename = s.table_name
       AND p.attname = 'queue'
  ) shares ON true
 ORDER BY s.state
