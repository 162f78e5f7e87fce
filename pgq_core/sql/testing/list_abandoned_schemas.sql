-- Schemas of sessions that ended without dropping them: nobody holds their lock.
SELECT nspname::text
  FROM pg_namespace
 WHERE starts_with(nspname, %(prefix)s)
   AND pg_try_advisory_xact_lock(hashtextextended(nspname, 0))
 ORDER BY nspname
 LIMIT %(limit)s
