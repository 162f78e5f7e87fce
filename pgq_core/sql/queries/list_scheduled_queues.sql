-- The queues that hold scheduled jobs, by hopping from one to the next in the index: the number of rows does not matter.
WITH RECURSIVE hop AS (
    (SELECT queue FROM {schema}.jobs WHERE status = 'scheduled' ORDER BY queue, not_before, id LIMIT 1)
    UNION ALL
    SELECT (SELECT queue FROM {schema}.jobs WHERE status = 'scheduled' AND queue > hop.queue ORDER BY queue, not_before, id LIMIT 1)
      FROM hop
     WHERE hop.queue IS NOT NULL
)
SELECT queue FROM hop WHERE queue IS NOT NULL ORDER BY queue LIMIT 10000
