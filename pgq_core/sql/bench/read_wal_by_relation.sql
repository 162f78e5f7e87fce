-- Whose changes the WAL up to a position holds, looking back at most `window` bytes. A record counts for the first block it
-- touches; records without one (commits) for nobody. Partitions count for their table, their indexes for its indexes.
WITH record AS (
    SELECT max(reltablespace) FILTER (WHERE block_id = 0) AS reltablespace,
           max(relfilenode) FILTER (WHERE block_id = 0) AS relfilenode,
           max(record_length) AS length,
           sum(block_fpi_length) AS page_images
      FROM pg_get_wal_block_info(greatest(%(start)s::pg_lsn, %(stop)s::pg_lsn - %(window)s::numeric), %(stop)s::pg_lsn)
     WHERE reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
     GROUP BY start_lsn
)
SELECT coalesce(parent.relname, own.relname) AS relation,
       sum(record.length)::double precision AS bytes,
       sum(record.page_images)::double precision AS page_images
  FROM record
  JOIN pg_class own ON own.oid = pg_filenode_relation(record.reltablespace, record.relfilenode)
  LEFT JOIN pg_inherits i ON i.inhrelid = own.oid
  LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 GROUP BY coalesce(parent.relname, own.relname)
 ORDER BY bytes DESC
 LIMIT 40
