SELECT {schema}.resume(%(queue)s)
