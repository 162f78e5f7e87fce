-- Workers start behind a closed door, so that the first one does not begin while the last one still loads its modules.
SELECT {schema}.pause(%(queue)s)
