-- For the rest of this transaction: the handler is through. Its job's row may be locked by somebody else, who must not hold this up, and is
-- locked by us from here on: whoever falls silent now, suspended between two statements, must not keep it from others.
SET LOCAL lock_timeout = {lock};
SET LOCAL idle_in_transaction_session_timeout = {silence}
