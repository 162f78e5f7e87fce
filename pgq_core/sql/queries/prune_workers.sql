-- Deletes rows of workers that ended long ago, and all but the latest `keep` of the others: runs keep their names anyway.
-- Never one that a running job still names: its absence would only slow the rescue down.
DELETE FROM {schema}.workers
 WHERE id = ANY (ARRAY(
       SELECT w.id
         FROM {schema}.workers w
        WHERE w.stopped_at IS NOT NULL
          AND (w.stopped_at < now() - %(kept)s::interval
               OR w.id = ANY (ARRAY(SELECT id FROM {schema}.workers WHERE stopped_at IS NOT NULL ORDER BY stopped_at DESC, id OFFSET %(keep)s)))
          AND NOT EXISTS (SELECT FROM {schema}.jobs j WHERE j.locked_by = w.id)
        ORDER BY w.id
          FOR UPDATE SKIP LOCKED))
