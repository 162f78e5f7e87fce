"""The benchmark: what the queue does on this machine and server, measured with real worker processes.

Nothing is imported here: workers import `pgq_core.bench.handlers`, and what they hold in memory is one of the figures.
"""
