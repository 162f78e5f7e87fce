"""What a job is and what may happen to it. Pure: no I/O, no clock, no global randomness."""
