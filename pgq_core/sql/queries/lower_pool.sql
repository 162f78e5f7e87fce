-- Workers that an operator sent away one by one are not to be replaced: the pool wants so many fewer, down to its minimum.
UPDATE {schema}.worker_pools
   SET wanted = greatest(minimum, wanted - %(by)s),
       updated_at = now(),
       updated_by = %(supervisor_id)s
 WHERE host = %(host)s
   AND name = %(name)s
