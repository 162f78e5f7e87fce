"""A route that is described like every other, and served without the framework's machinery around its function."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class DirectRoute(APIRoute):
    """For a busy path: solving dependencies and checking what is answered cost more than adding a job.

    Its function takes the request and nothing else, answers a Response, and asks by itself who is calling.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return endpoint
