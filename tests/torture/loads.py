"""What the runs under a steady load share: jobs that sleep, so that the slots are the capacity, not the machine."""

from __future__ import annotations

NAP = 0.2
SLOTS = 16
CAPACITY = SLOTS / NAP
P99_WAIT = """
SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - greatest(due_at, enqueued_at)))
  FROM job_runs
 WHERE outcome = 'succeeded'"""
