"""Structured logs: one JSON object a line on stderr, with the request's id; never a secret.

A filter takes out whatever looks like a token, so that a mistake elsewhere does not leak one.
"""

import contextlib
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Final

import structlog

TOKEN_PATTERN: Final = re.compile(r"hr_(user|node|run)_([a-z0-9]{10})_[0-9A-Za-z]+(_[0-9A-Za-z]+)?")


def redact(text: str) -> str:
    """The text with every token's secret taken out; its public id stays, to find it by."""
    return TOKEN_PATTERN.sub(r"hr_\1_\2_[redacted]", text)


def _redact_event(
    _logger: object, _method: str, event: MutableMapping[str, object]
) -> MutableMapping[str, object]:
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = redact(value)
    return event


class _StderrLogger:
    """Prints lines. One that cannot be written, as on a full disk, is lost: it must not fail the
    request that it tells of.
    """

    def __init__(self, *_: object) -> None:
        self._stream = sys.stderr

    def msg(self, line: str) -> None:
        """Print one line, or nothing."""
        with contextlib.suppress(OSError):
            print(line, file=self._stream, flush=True)

    debug = info = warning = error = critical = fatal = exception = log = msg


def configure_logs(level: str) -> None:
    """Sends structlog and the standard library to stderr as JSON lines."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        # As text, without the values of variables: those may be secrets.
        structlog.processors.format_exc_info,
        _redact_event,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=_StderrLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processor=structlog.processors.JSONRenderer()
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for quiet in ("alembic", "uvicorn.access"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
