-- For this session, until it is said anew: how long a statement waits for a lock.
SET lock_timeout = {milliseconds}
