-- Unresolved dead letters by fingerprint: a loose index scan names the groups (at most `most`), each is counted up to `cap`.
-- What a group looks like is told by its newest letter. Letters without a fingerprint make up the last group.
WITH RECURSIVE fingerprints AS (
    (SELECT fingerprint FROM {schema}.dead_letter_jobs WHERE resolution IS NULL ORDER BY fingerprint LIMIT 1)
    UNION ALL
    SELECT following.fingerprint
      FROM fingerprints f
     CROSS JOIN LATERAL (
        SELECT (SELECT d.fingerprint
                  FROM {schema}.dead_letter_jobs d
                 WHERE d.resolution IS NULL AND d.fingerprint > f.fingerprint
                 ORDER BY d.fingerprint
                 LIMIT 1) AS fingerprint
     ) following
     WHERE f.fingerprint IS NOT NULL
), named AS (
    SELECT fingerprint FROM fingerprints WHERE fingerprint IS NOT NULL LIMIT %(most)s
), grouped AS (
    SELECT n.fingerprint, counted.letters, oldest.died_at AS first_at, newest.*
      FROM named n
     CROSS JOIN LATERAL (
        SELECT count(*) AS letters
          FROM (SELECT
                  FROM {schema}.dead_letter_jobs d
                 WHERE d.resolution IS NULL AND d.fingerprint = n.fingerprint
                 ORDER BY d.id
                 LIMIT %(cap)s + 1) c
     ) counted
     CROSS JOIN LATERAL (
        SELECT d.died_at
          FROM {schema}.dead_letter_jobs d
         WHERE d.resolution IS NULL AND d.fingerprint = n.fingerprint
         ORDER BY d.id
         LIMIT 1
     ) oldest
     CROSS JOIN LATERAL (
        SELECT d.id, d.job_type, d.queue, d.error_class, d.last_error, d.died_at
          FROM {schema}.dead_letter_jobs d
         WHERE d.resolution IS NULL AND d.fingerprint = n.fingerprint
         ORDER BY d.id DESC
         LIMIT 1
     ) newest
    UNION ALL
    SELECT NULL, counted.letters, oldest.died_at, newest.*
      FROM (SELECT count(*) AS letters
              FROM (SELECT
                      FROM {schema}.dead_letter_jobs d
                     WHERE d.resolution IS NULL AND d.fingerprint IS NULL
                     ORDER BY d.id
                     LIMIT %(cap)s + 1) c) counted
     CROSS JOIN LATERAL (
        SELECT d.died_at
          FROM {schema}.dead_letter_jobs d
         WHERE d.resolution IS NULL AND d.fingerprint IS NULL
         ORDER BY d.id
         LIMIT 1
     ) oldest
     CROSS JOIN LATERAL (
        SELECT d.id, d.job_type, d.queue, d.error_class, d.last_error, d.died_at
          FROM {schema}.dead_letter_jobs d
         WHERE d.resolution IS NULL AND d.fingerprint IS NULL
         ORDER BY d.id DESC
         LIMIT 1
     ) newest
)
SELECT fingerprint, job_type, queue, error_class, left(last_error, 300) AS sample_error, letters, first_at, died_at AS last_at
  FROM grouped
 ORDER BY letters DESC, last_at DESC
 LIMIT %(most)s
