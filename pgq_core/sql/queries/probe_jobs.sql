-- Whether jobs can be read right now: a look-up that meets every lock that would hold up an enqueue's readers.
SELECT count(*) FROM {schema}.jobs WHERE id = 0
