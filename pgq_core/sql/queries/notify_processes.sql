-- A hint to the processes of this schema to look at once; the word says where. They would find out by polling, too.
SELECT pg_notify({schema}.wake_channel(), %(word)s)
 WHERE pg_notification_queue_usage() < 0.5
