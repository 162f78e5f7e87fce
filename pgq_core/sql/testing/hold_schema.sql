-- Marks a schema as in use for as long as this session lives.
SELECT pg_advisory_lock(hashtextextended(%(name)s, 0))
