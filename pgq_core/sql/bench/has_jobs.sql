-- Whether any job of the queue has not reached its end.
SELECT EXISTS (SELECT FROM {schema}.jobs WHERE queue = %(queue)s)
