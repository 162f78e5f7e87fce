"""What `pgq-core worker` is told."""

from __future__ import annotations

from dataclasses import dataclass

from pgq_core.plain_settings import AnySettings
from pgq_core.worker.spec import RunnerSpec


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`settings.dsn` is resolved: an address, not None."""

    settings: AnySettings
    apps: tuple[str, ...]
    pool: str | None = None
    burst: bool = False
    reload: bool = False
    """Start the runner anew whenever a source file below the working directory changes."""

    @property
    def spec(self) -> RunnerSpec:
        return RunnerSpec(
            apps=self.apps,
            queues=self.settings.queues,
            concurrency=self.settings.concurrency,
            pool=self.pool,
            burst=self.burst,
        )
