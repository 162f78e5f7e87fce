"""Logs: one structured line per event, on stderr, written so that a reader who does not read never holds up a job."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from pgq_core.domain.text import describe, storable

LogFormat = Literal["json", "text"]

STDERR = 2
MAX_FIELD = 2000
"""Longest text of one field of a log line, in characters: a line stays far below what readers of pipes cut."""
_CHUNKS_PER_WRITE = 500

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(*, format: LogFormat = "json", level: str = "info", descriptor: int = STDERR) -> LineWriter:  # noqa: A002 - the word the option has
    """Once per process: where log lines go and how they look. Answers the writer, to be closed at the end."""
    writer = LineWriter(descriptor)
    render = render_json if format == "json" else render_text
    processors: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        _bounded_fields,
        structlog.processors.add_log_level,
        _stamp,
        _rendered_by(render),
    ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=_LineLoggers(writer, render, tuple(processors), says_info=_LEVELS[level] <= logging.INFO),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_StandardLogs()], level=_LEVELS[level], force=True)
    return writer


def get_logger(name: str, **fields: Any) -> FilteringBoundLogger:  # noqa: ANN401 - log fields are anything
    """A logger whose lines carry `component=name` and the given fields."""
    logger: FilteringBoundLogger = structlog.get_logger(component=name, **fields)
    return logger


def say_many(logger: FilteringBoundLogger, event: str, rows: Iterable[Mapping[str, object]]) -> None:
    """What `logger.info(event, **row)` does for each row, at a third of its price and with one time stamp."""
    config = structlog.get_config()
    ours = config["logger_factory"]
    if not isinstance(ours, _LineLoggers) or tuple(config["processors"]) != ours.processors:  # somebody else listens
        for row in rows:
            logger.info(event, **row)
        return
    if ours.says_info:
        bound = structlog.get_context(logger)
        said = _stamp(logger, "", {"event": event, "level": "info"})
        ours.writer.write_lines([ours.render(_bounded_fields(logger, "", {**bound, **row, **said})) for row in rows])


def render_json(event: EventDict) -> bytes:
    """One line of JSON, whatever the fields hold.

    >>> render_json({"event": "x", "error": "a\\nb"})
    b'{"event":"x","error":"a\\\\nb"}'
    """
    try:
        return orjson.dumps(event, default=str)
    except (TypeError, ValueError):  # lone surrogates, integers beyond 64 bits, keys that are no text
        return json.dumps(event, default=str, skipkeys=True).encode("ascii", "backslashreplace")


def render_text(event: EventDict) -> bytes:
    """One line for a person: time, level, event, then the fields. Control characters of foreign text stay escaped.

    >>> render_text({"timestamp": "2026-01-02T03:04:05.678901Z", "level": "info", "event": "job_dead", "error": "a b"})
    b'03:04:05.678 info    job_dead error="a b"'
    """
    fields = dict(event)
    at = str(fields.pop("timestamp", ""))[11:23]
    level = str(fields.pop("level", ""))
    name = str(fields.pop("event", ""))
    fields.pop("component", None)
    pairs = " ".join(f"{key}={_shown(value)}" for key, value in fields.items() if value is not None)
    return f"{at} {level:7} {_quoted(name)} {pairs}".rstrip().encode("utf-8", "backslashreplace")


class LineWriter:
    """Writes lines to a descriptor from a thread of its own. When nobody reads, lines are dropped and counted."""

    def __init__(self, descriptor: int, *, capacity: int = 20_000) -> None:
        self._descriptor = descriptor
        self._capacity = capacity
        self._lines: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._counting = threading.RLock()
        """Entered again when the collector ends a coroutine right here that has a word to say."""
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def write(self, line: bytes) -> None:
        """Never blocks and never raises."""
        self.write_lines([line])

    def write_lines(self, lines: list[bytes]) -> None:
        """Many at once, which costs little more than one."""
        with self._counting:
            if self._waiting >= self._capacity or (self._thread is None and sys.is_finalizing()):
                # A thread that is started while the interpreter ends never runs, and its starter waits for it for ever.
                self.dropped += len(lines)
                return
            self._waiting += len(lines)
            self._lines.put(lines)
            if self._thread is None:
                self._start()

    def close(self, timeout: float = 1.0) -> None:
        """Waits, bounded, until what was written so far is out."""
        thread = self._thread
        if thread is not None:
            self._lines.put(None)
            thread.join(timeout)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pgq-lines", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        has_ended = False
        while not has_ended:
            found = [self._lines.get()]
            with contextlib.suppress(queue.Empty):
                while len(found) < _CHUNKS_PER_WRITE:
                    found.append(self._lines.get_nowait())
            has_ended = None in found
            lines = [line for chunk in found if chunk is not None for line in chunk]
            with self._counting:
                self._waiting -= len(lines)
                dropped, self.dropped = self.dropped, 0
            if dropped:
                lines.append(render_json({"event": "log_lines_dropped", "level": "warning", "count": dropped}))
            if lines:
                self._put(b"\n".join(lines) + b"\n")

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        # A closed pipe or a full disk costs lines, nothing else.
        with contextlib.suppress(OSError):
            while view:
                view = view[os.write(self._descriptor, view) :]


class RepeatedTrouble:
    """Says the same trouble once, then at most once a minute with a count, and says when it is over."""

    def __init__(
        self,
        logger: FilteringBoundLogger,
        *,
        pause: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._pause = pause
        self._clock = clock
        self._last: tuple[str, str] | None = None
        self._said_at = 0.0
        self._unsaid = 0
        self._since = 0.0

    def say(self, event: str, error: BaseException, **fields: Any) -> None:  # noqa: ANN401 - log fields are anything
        now = self._clock()
        if self._last is None:
            self._since = now
        kind = (event, type(error).__name__)
        if kind == self._last and now - self._said_at < self._pause:
            self._unsaid += 1
            return
        self._logger.warning(event, error=describe(error, limit=1000), repeated=self._unsaid or None, **fields)
        self._last, self._said_at, self._unsaid = kind, now, 0

    def over(self, event: str) -> None:
        """To be called after each success; says something only when there was trouble."""
        if self._last is not None:
            self._logger.info(event, after_seconds=round(self._clock() - self._since, 3))
            self._last, self._unsaid = None, 0


class _StandardLogs(logging.Handler):
    """Lines of the standard library's loggers (applications, drivers) look like ours."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(component=record.name)
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - arguments that do not fit the message are the caller's fault, not a reason to fail
            message = str(record.msg)
        fields = {"exc_info": record.exc_info} if record.exc_info else {}
        logger.log(min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL), message, **fields)


@dataclass(frozen=True, slots=True)
class _LineLoggers:
    """Makes structlog's loggers, and knows what `say_many` needs to do without them."""

    writer: LineWriter
    render: Callable[[EventDict], bytes]
    processors: tuple[structlog.typing.Processor, ...]
    says_info: bool

    def __call__(self, *_: object) -> _LineLogger:
        return _LineLogger(self.writer)


class _LineLogger:
    """What structlog hands rendered lines to; every level is the same stream."""

    def __init__(self, writer: LineWriter) -> None:
        self.msg = writer.write

    def __getattr__(self, level: str) -> Callable[[bytes], None]:
        if level.startswith("_"):
            raise AttributeError(level)
        return self.msg


def _bounded_fields(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Text of jobs is data: no field may be endless, and None says nothing."""
    for key, value in list(event.items()):
        if value is None:
            del event[key]
        elif isinstance(value, str) and len(value) > MAX_FIELD:
            event[key] = storable(value, limit=MAX_FIELD)
    return event


def _stamp(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    now = time.time()
    seconds = int(now)
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    event["timestamp"] = f"{at}.{int((now - seconds) * 1_000_000):06d}Z"
    return event


def _rendered_by(render: Callable[[EventDict], bytes]) -> Callable[[WrappedLogger, str, EventDict], Any]:
    # structlog takes bytes only as the one argument of the logger's method.
    return lambda _, __, event: ((render(event),), {})


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    if text and text.isprintable() and not set(text) & set(' "=\\'):
        return text
    return json.dumps(text, ensure_ascii=False) if _is_calm(text) else json.dumps(text)


def _is_calm(text: str) -> bool:
    """Whether nothing but line breaks and tabs (which JSON escapes) would reach the terminal as a control."""
    return all(c.isprintable() or c in "\n\r\t" for c in text)
