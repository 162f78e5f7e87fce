-- Cancels by the function that SQL callers use too, in id order, so that two operators cannot deadlock.
SELECT id, {schema}.cancel(id) AS answer
  FROM (SELECT DISTINCT unnest(%(ids)s::bigint[]) AS id ORDER BY id) wanted
