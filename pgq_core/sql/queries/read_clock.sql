-- The server's clock, which decides about every row, in seconds.
SELECT extract(epoch FROM clock_timestamp())::double precision
