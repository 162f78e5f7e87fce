-- Never waits for somebody who has the table, never takes it from the others to give its end back to the disk, and takes one core at most.
VACUUM (SKIP_LOCKED, TRUNCATE false, PARALLEL 0) {schema}.jobs
