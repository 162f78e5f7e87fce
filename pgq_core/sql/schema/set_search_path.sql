-- For this transaction: bare names are made and found in our schema alone; functions keep this path for good.
SET LOCAL search_path = {schema}, pg_temp
