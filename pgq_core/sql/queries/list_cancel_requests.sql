-- Those of a worker's jobs that were asked to stop. By id: what a worker holds it knows, and the index of all that runs is long
-- where vacuum cannot clear it.
SELECT id
  FROM {schema}.jobs
 WHERE id = ANY (%(ids)s::bigint[])
   AND locked_by = %(worker_id)s
   AND status = 'running'
   AND cancel_requested
