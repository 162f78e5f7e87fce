"""What operators do to queues, jobs, dead letters, pools and workers: each verb once, each written down."""

from __future__ import annotations

from pgq_core.operations.importing import fault_of
from pgq_core.operations.journal import Progress
from pgq_core.operations.operations import Operations, automatic_spread, local_operator

__all__ = ["Operations", "Progress", "automatic_spread", "fault_of", "local_operator"]
