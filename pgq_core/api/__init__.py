"""The HTTP API: jobs, dead letters, queues, metrics, and a web page for the dead letters."""
