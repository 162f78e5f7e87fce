-- One migrator of a schema at a time. It is asked again and again instead of waited for: a waiting statement holds a
-- snapshot, and a concurrent index build of the holder would wait for that snapshot's end.
SELECT pg_try_advisory_xact_lock(hashtextextended('pgq migrate ' || %(schema)s::text, 0))
