-- Running jobs that nobody works on: their lease is past, or their worker has ended, or it has no row at all although the claim is old (one
-- without a time was made by hand). Not those that could not be given back a moment ago: they must not stand in front of the others for ever.
-- SKIP LOCKED: a row that somebody finishes right now is none of ours. Ordered by the time of the claim: an order by id would tempt the
-- planner to walk the whole primary key.
SELECT j.id, CASE WHEN j.locked_at IS NULL THEN 0 ELSE coalesce(j.claim_token, 0) END AS claim_token, j.locked_by AS worker_id, j.queue, j.job_type, j.attempts, j.max_attempts, j.losses, j.suspect,
       extract(epoch FROM t.backoff_base)::double precision AS backoff_base, extract(epoch FROM t.backoff_cap)::double precision AS backoff_cap
  FROM {schema}.jobs j
  LEFT JOIN {schema}.workers w ON w.id = j.locked_by
  LEFT JOIN {schema}.job_types t ON t.name = j.job_type
 WHERE j.locked_by IS NOT NULL
   AND j.status = 'running'
   AND CASE
           WHEN j.lease_until IS NOT NULL THEN j.lease_until < now()
           WHEN w.id IS NOT NULL THEN w.stopped_at IS NOT NULL
           ELSE coalesce(j.locked_at NOT BETWEEN now() - %(stale_limit)s::interval AND now() + %(stale_limit)s::interval, true)
                AND pg_postmaster_start_time() NOT BETWEEN now() - %(stale_limit)s::interval AND now()
       END
   AND j.id <> ALL (%(except_jobs)s::bigint[])
 ORDER BY j.locked_at, j.id
 LIMIT %(limit)s
   FOR UPDATE OF j SKIP LOCKED
