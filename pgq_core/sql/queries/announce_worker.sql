-- The runner is ready: what it knows, for everybody who asks which worker could run a type.
UPDATE {schema}.workers
   SET job_types = %(job_types)s,
       pid = %(pid)s,
       state = CASE WHEN state = 'starting' THEN 'running' ELSE state END
 WHERE id = %(worker_id)s
   AND stopped_at IS NULL
