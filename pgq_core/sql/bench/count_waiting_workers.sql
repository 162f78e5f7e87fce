-- Workers that sleep until they are woken.
SELECT count(*) FROM {schema}.worker_waits WHERE waiting
