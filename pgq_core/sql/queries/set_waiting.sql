-- Says that this worker sleeps and wants to be woken (or no longer). Only a hint, so its commit waits for no disk.
INSERT INTO {schema}.worker_waits AS w (worker_id, waiting)
SELECT %(worker_id)s::text, %(waiting)s::boolean
  FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unsynced
ON CONFLICT (worker_id) DO UPDATE SET waiting = excluded.waiting WHERE w.waiting <> excluded.waiting
