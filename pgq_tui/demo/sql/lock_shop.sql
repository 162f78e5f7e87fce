-- Demos that start at the same moment open the shop one after the other.
SELECT pg_advisory_xact_lock(hashtext('pgq demo shop'))
