-- Pauses by the function that SQL callers use too.
SELECT {schema}.pause(%(queue)s, %(reason)s, %(operator)s)
