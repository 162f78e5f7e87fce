-- Resumes by the function that SQL callers use too.
SELECT {schema}.resume(%(queue)s)
