-- For the rest of this transaction: the handler is through, and the job's row is locked from here on. Whoever falls silent now, suspended
-- between two statements, must not keep it from others.
SET LOCAL idle_in_transaction_session_timeout = {milliseconds}
