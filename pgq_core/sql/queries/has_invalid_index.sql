-- Whether a concurrent build of this index was begun and not finished.
SELECT EXISTS (
    SELECT FROM pg_index i
      JOIN pg_class c ON c.oid = i.indexrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = %(schema)s
       AND c.relname = %(index)s
       AND NOT i.indisvalid)
