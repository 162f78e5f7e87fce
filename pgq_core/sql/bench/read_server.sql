-- What a figure depends on; some of it decides whether it counts at all.
SELECT name, current_setting(name) AS value
  FROM pg_settings
 WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_sync_method', 'shared_buffers',
                'max_wal_size', 'checkpoint_timeout', 'max_connections', 'autovacuum', 'wal_compression', 'jit')
 ORDER BY name
