-- For this session. A vacuum waits for whoever stands still in a page, and the duties that share the connection wait with it.
SET statement_timeout = {milliseconds};
SET vacuum_cost_delay = 0
