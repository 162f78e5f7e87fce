-- Sums statistics past retention into one row per queue and type (bucket -infinity, slot 0), a bounded batch a pass.
-- No chart reads that bucket; totals do, and so they never fall.
WITH old AS MATERIALIZED (
    SELECT bucket, queue, job_type, slot
      FROM {schema}.job_stats
     WHERE bucket < now() - %(kept)s::interval
       AND bucket > '-infinity'
     ORDER BY bucket, queue, job_type, slot
     LIMIT %(limit)s
       FOR UPDATE SKIP LOCKED
), moved AS (
    DELETE FROM {schema}.job_stats s
     USING old o
     WHERE (s.bucket, s.queue, s.job_type, s.slot) = (o.bucket, o.queue, o.job_type, o.slot)
    RETURNING s.*
), cells AS (
    SELECT queue, job_type, cell, sum(duration) AS durations, sum(wait) AS waits
      FROM moved
     CROSS JOIN LATERAL unnest(durations, waits) WITH ORDINALITY AS t(duration, wait, cell)
     GROUP BY queue, job_type, cell
), summed AS (
    SELECT queue, job_type, sum(succeeded) AS succeeded, sum(retried) AS retried, sum(dead) AS dead, sum(lost) AS lost,
           sum(released) AS released, sum(snoozed) AS snoozed, sum(cancelled) AS cancelled, sum(discarded) AS discarded,
           sum(expired) AS expired, sum(duration_seconds) AS duration_seconds
      FROM moved
     GROUP BY queue, job_type
), kept AS (
    INSERT INTO {schema}.job_stats AS s (bucket, queue, job_type, slot, succeeded, retried, dead, lost, released, snoozed, cancelled,
                                         discarded, expired, duration_seconds, durations, waits)
    SELECT '-infinity', queue, job_type, 0, succeeded, retried, dead, lost, released, snoozed, cancelled, discarded, expired, duration_seconds,
           ARRAY(SELECT coalesce(durations, 0)::bigint FROM cells c WHERE (c.queue, c.job_type) = (m.queue, m.job_type) ORDER BY cell),
           ARRAY(SELECT coalesce(waits, 0)::bigint FROM cells c WHERE (c.queue, c.job_type) = (m.queue, m.job_type) ORDER BY cell)
      FROM summed m
     ORDER BY queue, job_type
    ON CONFLICT (bucket, queue, job_type, slot) DO UPDATE
       SET succeeded = s.succeeded + excluded.succeeded,
           retried = s.retried + excluded.retried,
           dead = s.dead + excluded.dead,
           lost = s.lost + excluded.lost,
           released = s.released + excluded.released,
           snoozed = s.snoozed + excluded.snoozed,
           cancelled = s.cancelled + excluded.cancelled,
           discarded = s.discarded + excluded.discarded,
           expired = s.expired + excluded.expired,
           duration_seconds = s.duration_seconds + excluded.duration_seconds,
           durations = {schema}.add_cells(s.durations, excluded.durations),
           waits = {schema}.add_cells(s.waits, excluded.waits)
)
SELECT queue FROM moved
