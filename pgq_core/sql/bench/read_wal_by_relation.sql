-- Whose changes the WAL between two positions holds. A record counts for the first block it touches; records without one
-- (commits) for nobody. Partitions count for their table, their indexes for its indexes.
SELECT coalesce(parent.relname, own.relname) AS relation,
       own.relkind = 'i' AS is_index,
       sum(wal.record_length)::double precision AS bytes,
       sum(wal.block_fpi_length)::double precision AS page_images
  FROM pg_get_wal_block_info(%(start)s::pg_lsn, %(stop)s::pg_lsn) AS wal
  JOIN pg_class own ON own.oid = pg_filenode_relation(wal.reltablespace, wal.relfilenode)
  LEFT JOIN pg_inherits i ON i.inhrelid = own.oid
  LEFT JOIN pg_class parent ON parent.oid = i.inhparent
 WHERE wal.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND wal.block_id = 0
 GROUP BY coalesce(parent.relname, own.relname), own.relkind = 'i'
 ORDER BY bytes DESC
 LIMIT 40
