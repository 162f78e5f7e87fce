-- Drops a test session's schema with all that is in it.
DROP SCHEMA IF EXISTS {schema} CASCADE
