-- Closed runs of all time per queue, over the buckets from `since` (NULL: the beginning) up to `before` (NULL: now): what counters are made of.
-- At most `most` queues are named beside the `known` ones; the rest comes as one row without a name, so that invented names cost nothing.
WITH summed AS (
    SELECT queue,
           sum(succeeded) AS succeeded, sum(retried) AS retried, sum(dead) AS dead, sum(lost) AS lost, sum(released) AS released,
           sum(snoozed) AS snoozed, sum(cancelled) AS cancelled, sum(discarded) AS discarded, sum(expired) AS expired, sum(duration_seconds) AS duration_seconds,
           ARRAY[sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]), sum(durations[6]),
                 sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]), sum(durations[11]), sum(durations[12]),
                 sum(durations[13]), sum(durations[14]), sum(durations[15]), sum(durations[16]), sum(durations[17]), sum(durations[18]),
                 sum(durations[19]), sum(durations[20]), sum(durations[21]), sum(durations[22]), sum(durations[23]), sum(durations[24])]::bigint[] AS durations,
           ARRAY[sum(waits[1]), sum(waits[2]), sum(waits[3]), sum(waits[4]), sum(waits[5]), sum(waits[6]),
                 sum(waits[7]), sum(waits[8]), sum(waits[9]), sum(waits[10]), sum(waits[11]), sum(waits[12]),
                 sum(waits[13]), sum(waits[14]), sum(waits[15]), sum(waits[16]), sum(waits[17]), sum(waits[18]),
                 sum(waits[19]), sum(waits[20]), sum(waits[21]), sum(waits[22]), sum(waits[23]), sum(waits[24])]::bigint[] AS waits
      FROM {schema}.job_stats
     WHERE (%(since)s::timestamptz IS NULL OR bucket >= %(since)s)
       AND (%(before)s::timestamptz IS NULL OR bucket < %(before)s)
     GROUP BY queue
), ranked AS (
    SELECT *, queue = ANY(%(known)s::text[]) AS is_known,
           row_number() OVER (ORDER BY queue = ANY(%(known)s::text[]), queue) AS rank
      FROM summed
), labelled AS (
    SELECT *, CASE WHEN is_known OR rank <= %(most)s THEN queue END AS label
      FROM ranked
)
SELECT label AS queue,
       sum(succeeded)::bigint AS succeeded, sum(retried)::bigint AS retried, sum(dead)::bigint AS dead, sum(lost)::bigint AS lost,
       sum(released)::bigint AS released, sum(snoozed)::bigint AS snoozed, sum(cancelled)::bigint AS cancelled, sum(discarded)::bigint AS discarded, sum(expired)::bigint AS expired,
       sum(duration_seconds)::double precision AS duration_seconds,
       ARRAY[sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]), sum(durations[6]),
                 sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]), sum(durations[11]), sum(durations[12]),
                 sum(durations[13]), sum(durations[14]), sum(durations[15]), sum(durations[16]), sum(durations[17]), sum(durations[18]),
                 sum(durations[19]), sum(durations[20]), sum(durations[21]), sum(durations[22]), sum(durations[23]), sum(durations[24])]::bigint[] AS durations,
       ARRAY[sum(waits[1]), sum(waits[2]), sum(waits[3]), sum(waits[4]), sum(waits[5]), sum(waits[6]),
                 sum(waits[7]), sum(waits[8]), sum(waits[9]), sum(waits[10]), sum(waits[11]), sum(waits[12]),
                 sum(waits[13]), sum(waits[14]), sum(waits[15]), sum(waits[16]), sum(waits[17]), sum(waits[18]),
                 sum(waits[19]), sum(waits[20]), sum(waits[21]), sum(waits[22]), sum(waits[23]), sum(waits[24])]::bigint[] AS waits
  FROM labelled
 GROUP BY label
 ORDER BY label
