-- Jobs in this worker's hands that were asked to stop.
SELECT id
  FROM {schema}.jobs
 WHERE locked_by = %(worker_id)s
   AND status = 'running'
   AND cancel_requested
 ORDER BY id
 LIMIT 10000
