-- Which of these jobs somebody else has locked at this moment: a write of theirs would wait for him. Waits for nobody itself.
SELECT asked.id
  FROM unnest(%(ids)s::bigint[]) AS asked(id)
 WHERE EXISTS (SELECT FROM {schema}.jobs j WHERE j.id = asked.id)
   AND asked.id <> ALL (ARRAY(
       SELECT id
         FROM {schema}.jobs
        WHERE id = ANY (%(ids)s::bigint[])
          FOR UPDATE SKIP LOCKED))
