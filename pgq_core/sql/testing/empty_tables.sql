-- Empties every table of the schema but those that describe the schema itself. A few rows are deleted several times faster than tables are truncated.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT quote_ident(nspname) || '.' || quote_ident(relname)
          FROM pg_class
          JOIN pg_namespace n ON n.oid = relnamespace
         WHERE nspname = {schema_name}
           AND relkind IN ('r', 'p')
           AND NOT relispartition
           AND relname NOT IN ('schema_migrations', 'parameters')
         ORDER BY relname DESC
    LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
END $$
