-- Whether a suspect waits in one of these queues: a busy worker then drains itself empty to run it alone.
-- Pending is said in other words than the claim index says it, so that the small index of suspects is read, whatever the statistics say.
SELECT EXISTS (
    SELECT
      FROM {schema}.jobs j
     WHERE queue = ANY (ARRAY(SELECT asked
                                FROM unnest(%(queues)s::text[]) AS asked
                               WHERE NOT EXISTS (SELECT FROM {schema}.queues q WHERE q.name = asked AND q.paused)))
       AND suspect
       AND status NOT IN ('scheduled', 'waiting', 'running')
       AND not_before <= now()
       AND job_type = ANY (%(job_types)s::text[])
       AND id <> ALL (%(except_jobs)s::bigint[]))
