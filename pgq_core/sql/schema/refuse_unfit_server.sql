-- Raises PQ005 on a server that cannot hold our schema, before anything is made.
DO $$
BEGIN
    IF current_setting('server_version_num')::int < 140000 THEN
        RAISE EXCEPTION 'this is PostgreSQL %, and pgq needs version 14 or newer', current_setting('server_version')
            USING ERRCODE = 'PQ005';
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'database "%" is encoded in %, which cannot hold every payload: use a database created with ENCODING UTF8',
            current_database(), current_setting('server_encoding')
            USING ERRCODE = 'PQ005';
    END IF;
END $$
