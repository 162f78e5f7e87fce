-- Sessions of this database but those of the benchmark itself, by the name their program gave.
SELECT application_name AS name, count(*) AS connections
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND backend_type = 'client backend'
   AND application_name NOT LIKE 'pgq bench%%'
 GROUP BY application_name
 ORDER BY application_name
