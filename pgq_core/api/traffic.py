"""What this process was asked and how it answered: for its metrics and its log."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from starlette.types import Scope

from pgq_core.logs import get_logger

_UNKNOWN: Final = "unknown"
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "DELETE"))
_FIRST_FAULT: Final = 500


class Traffic:
    """Counts of one process, unlike the metrics of jobs, which are those of the database."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else each of these would come twice
        self._requests = Counter(
            "http_requests", "Requests answered by this process.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "http_request_seconds", "How long answers of this process took.", ["route"], registry=registry
        )
        self._logger = get_logger("pgq.api")

    def count(self, scope: Scope, status: int, seconds: float, *, method: str) -> None:
        """`method`: as it was asked; the one of `scope` may be what that was taken for."""
        if method not in _METHODS:
            method = _UNKNOWN
        route = getattr(scope.get("route"), "path", _UNKNOWN)
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        log = self._logger.warning if status >= _FIRST_FAULT else self._logger.debug
        log(
            "http_request",
            method=method,
            path=scope["path"],
            status=status,
            duration_ms=round(seconds * 1000, 1),
        )
