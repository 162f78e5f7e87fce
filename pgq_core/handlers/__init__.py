"""Handlers: the functions of job types, kept in registries; the bare decorators write into the default one."""

from __future__ import annotations

from pgq_core.handlers.failure import Failure, failure_of
from pgq_core.handlers.handler import Call, EnqueueOptions, Enqueues, Handler, RetryDelay
from pgq_core.handlers.loading import load_app
from pgq_core.handlers.registry import Hook, Middleware, NextCall, Registry, Resources, default_registry

handler = default_registry.handler
on_startup = default_registry.on_startup
on_shutdown = default_registry.on_shutdown
middleware = default_registry.middleware

__all__ = [
    "handler",
    "on_startup",
    "on_shutdown",
    "middleware",
    "Registry",
    "default_registry",
    "Handler",
    "load_app",
    "Failure",
    "failure_of",
    "Call",
    "EnqueueOptions",
    "Enqueues",
    "Hook",
    "Middleware",
    "NextCall",
    "Resources",
    "RetryDelay",
]
