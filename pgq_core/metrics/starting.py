"""Serving metrics beside something else, where the packages for it are installed."""

from __future__ import annotations

from pgq_core.errors import InvalidSettings
from pgq_core.plain_settings import AnySettings
from pgq_core.service import Service

LOOPBACK = "127.0.0.1"


def metrics_server(settings: AnySettings, port: int, *, host: str = LOOPBACK) -> Service:
    """A service that answers `/metrics` on a port of its own, taken now.

    Raises InvalidSettings when the port cannot be had, or the packages of the extra `api` are missing.
    """
    try:
        from pgq_core.metrics.server import MetricsServer
    except ModuleNotFoundError as missing:
        raise InvalidSettings(f"metrics need more packages ({missing.name}): pip install '.[api]'") from missing
    return MetricsServer(settings, port, host=host)
