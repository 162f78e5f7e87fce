-- Commits and row versions of this database so far. A backend reports its own when it is idle or ends.
SELECT coalesce(sum(n_tup_ins), 0)::bigint AS inserted,
       coalesce(sum(n_tup_upd), 0)::bigint AS updated,
       coalesce(sum(n_tup_hot_upd), 0)::bigint AS updated_in_place,
       coalesce(sum(n_tup_del), 0)::bigint AS deleted,
       coalesce(sum(n_dead_tup), 0)::bigint AS dead,
       (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits
  FROM pg_stat_user_tables
 WHERE schemaname = {schema_name}
