-- What this role may do where the schema is, or would be.
SELECT current_user::text AS role,
       current_database()::text AS database,
       n.oid IS NOT NULL AS schema_exists,
       has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS may_create_tables
  FROM (VALUES (%(schema)s::text)) wanted (name)
  LEFT JOIN pg_namespace n ON n.nspname = wanted.name
