-- How many dead letters match, counted no further than one past `limit`. Looks at no more than `reach` rows.
SELECT count(*)
  FROM (SELECT
          FROM (SELECT id, queue, job_type, reason, error_class, last_error, died_at
                  FROM {schema}.dead_letter_jobs
                 WHERE id < %(before)s
                   AND (%(resolution)s = 'any'
                        OR %(resolution)s = 'unresolved' AND resolution IS NULL
                        OR %(resolution)s <> 'unresolved' AND resolution = %(resolution)s)
                   AND (%(queue)s::text IS NULL OR queue = %(queue)s)
                   AND (%(fingerprint)s::text IS NULL
                        OR fingerprint = nullif(%(fingerprint)s, '')
                        OR %(fingerprint)s = '' AND fingerprint IS NULL)
                 ORDER BY id DESC
                 LIMIT %(reach)s) d
         WHERE (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
           AND (%(reason)s::text IS NULL OR reason = %(reason)s)
           AND (%(died_after)s::timestamptz IS NULL OR died_at >= %(died_after)s)
           AND (%(died_before)s::timestamptz IS NULL OR died_at < %(died_before)s)
           AND (%(text)s::text IS NULL
                OR strpos(lower(last_error), lower(%(text)s)) > 0
                OR strpos(lower(error_class), lower(%(text)s)) > 0
                OR strpos(lower(job_type), lower(%(text)s)) > 0)
         LIMIT %(limit)s) matching
