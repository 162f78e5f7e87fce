-- What one job set in its session must not meet the next one. DISCARD ALL would do the same and forget the prepared statements, too.
CLOSE ALL;
RESET SESSION AUTHORIZATION;
RESET ALL;
UNLISTEN *;
SELECT pg_advisory_unlock_all();
DISCARD TEMP
