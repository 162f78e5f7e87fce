-- A running job has a worker that lives, or was claimed so recently that nobody could have taken it back yet.
SELECT j.id AS job_id
  FROM jobs j
  LEFT JOIN workers w ON w.id = j.locked_by
 WHERE j.status = 'running'
   AND j.lease_until IS NULL
   AND (w.id IS NULL OR w.stopped_at IS NOT NULL OR w.heartbeat_at < now() - make_interval(secs => %(patience)s))
   AND j.locked_at < now() - make_interval(secs => %(patience)s)
