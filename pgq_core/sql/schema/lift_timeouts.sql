-- For this transaction: an administrator's time-outs are meant for queries, not for a migration of many rows. Not every
-- server knows every one of them. Only the wait for a table's lock stays short, since all who come later queue up behind it.
DO $$
BEGIN
    PERFORM set_config(name, CASE name WHEN 'lock_timeout' THEN {lock_wait} ELSE '0' END, true)
       FROM pg_settings
      WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout', 'lock_timeout');
END $$
