"""Side-by-side measurement of PostgreSQL job queues: peers behind adapters, a fresh database and one clock for all."""
