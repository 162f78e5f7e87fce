-- Never waits for somebody who has the table, and never takes it from the others to give its end back to the disk.
VACUUM (SKIP_LOCKED, TRUNCATE false) {schema}.jobs
