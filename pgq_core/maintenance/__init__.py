"""What keeps a schema healthy, whoever does it: recovery, promotion, retention."""

from __future__ import annotations

from pgq_core.maintenance.maintenance import Maintenance, run_maintenance

__all__ = ["Maintenance", "run_maintenance"]
