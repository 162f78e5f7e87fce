-- Deletes statistics past retention, a bounded batch a pass.
DELETE FROM {schema}.job_stats s
 USING (SELECT bucket, queue, job_type, slot
          FROM {schema}.job_stats
         WHERE bucket < now() - %(kept)s::interval
         ORDER BY bucket, queue, job_type, slot
         LIMIT %(limit)s
           FOR UPDATE SKIP LOCKED) old
 WHERE (s.bucket, s.queue, s.job_type, s.slot) = (old.bucket, old.queue, old.job_type, old.slot)
