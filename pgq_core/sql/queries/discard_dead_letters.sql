-- Discards by the function that SQL callers use too; a row per letter that exists.
SELECT dead_letter_id AS id, refusal
  FROM {schema}.discard_dead_letters(%(ids)s::bigint[], %(operator)s)
 ORDER BY dead_letter_id
