-- For the split of WAL by table; only a superuser may, and only a server that has the extension.
CREATE EXTENSION IF NOT EXISTS pg_walinspect
