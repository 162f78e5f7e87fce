-- Replays by the function that SQL callers use too; a row per letter that exists: its new job, or why not.
SELECT dead_letter_id AS id, job_id, refusal
  FROM {schema}.replay_dead_letters(%(ids)s::bigint[], %(operator)s, %(spread)s::interval)
 ORDER BY dead_letter_id
