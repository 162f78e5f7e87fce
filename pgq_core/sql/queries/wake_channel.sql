-- The channel on which this schema says that there is something to look at.
SELECT {schema}.wake_channel()
