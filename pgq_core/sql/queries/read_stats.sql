-- Finished runs per chart bucket and queue since a time, summed over types and worker slots, with the histogram of durations.
-- Reads only the buckets asked for, by primary key; `since` is the start of a bucket.
SELECT date_bin(%(step)s::interval, bucket, timestamptz '2000-01-01 00:00+00') AS at,
       queue,
       sum(succeeded)::bigint AS succeeded,
       sum(retried)::bigint AS retried,
       sum(dead)::bigint AS dead,
       sum(lost)::bigint AS lost,
       sum(cancelled + discarded + expired)::bigint AS dropped,
       sum(released + snoozed)::bigint AS put_back,
       ARRAY[sum(durations[1]), sum(durations[2]), sum(durations[3]), sum(durations[4]), sum(durations[5]), sum(durations[6]),
             sum(durations[7]), sum(durations[8]), sum(durations[9]), sum(durations[10]), sum(durations[11]), sum(durations[12]),
             sum(durations[13]), sum(durations[14]), sum(durations[15]), sum(durations[16]), sum(durations[17]), sum(durations[18]),
             sum(durations[19]), sum(durations[20]), sum(durations[21]), sum(durations[22]), sum(durations[23]), sum(durations[24])]::bigint[]
           AS durations
  FROM {schema}.job_stats
 WHERE bucket >= %(since)s
 GROUP BY 1, 2
 ORDER BY 1, 2
