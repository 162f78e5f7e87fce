-- Beats for all workers of one keeper in one statement: narrow rows, no indexed column changes, so each is a HOT update.
-- `wanted` NULL: the row is gone, or (is_ended) somebody took the worker for lost and its jobs away: it has to stop, or (is_locked) somebody
-- else has locked it: this worker is not beaten for now, and the others do not wait with it.
WITH input AS (
    SELECT *
      FROM unnest(%(ids)s::text[], %(pids)s::int[], %(states)s::text[], %(running)s::int[], %(finished)s::bigint[], %(failed)s::bigint[],
                  %(late_writes)s::bigint[], %(cpu_percents)s::real[], %(rss_bytes)s::bigint[], %(loops)s::jsonb[])
        AS t(id, pid, state, running, finished, failed, late_writes, cpu_percent, rss_bytes, loops)
), held AS MATERIALIZED (
    SELECT w.id
      FROM {schema}.workers w
     WHERE w.id = ANY (%(ids)s::text[])
       AND w.stopped_at IS NULL
       FOR UPDATE OF w SKIP LOCKED
), beaten AS (
    UPDATE {schema}.workers w
       SET heartbeat_at = now(),
           pid = i.pid,
           state = i.state,
           running = i.running,
           finished = i.finished,
           failed = i.failed,
           late_writes = i.late_writes,
           cpu_percent = i.cpu_percent,
           rss_bytes = i.rss_bytes,
           loops = i.loops
      FROM held h
      JOIN input i ON i.id = h.id
     WHERE w.id = h.id
    RETURNING w.id, w.wanted
)
SELECT i.id,
       b.wanted,
       EXISTS (SELECT FROM {schema}.workers w WHERE w.id = i.id AND w.stopped_at IS NOT NULL) AS is_ended,
       b.id IS NULL AND EXISTS (SELECT FROM {schema}.workers w WHERE w.id = i.id AND w.stopped_at IS NULL) AS is_locked
  FROM input i
  LEFT JOIN beaten b ON b.id = i.id
 ORDER BY i.id
