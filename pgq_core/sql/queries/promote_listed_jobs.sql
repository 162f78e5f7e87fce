-- Makes jobs pending that this transaction has locked.
UPDATE {schema}.jobs
   SET status = 'pending'
 WHERE id = ANY (%(ids)s::bigint[])
   AND locked_by IS NULL
