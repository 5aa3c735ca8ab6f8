"""Logs as JSON Lines. Logs contain names and codes, never values or keys."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

from memorywall.server.access_log import ACCESS_LOGGER

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: time, level, logger, message and the fields of
    `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update((name, value) for name, value in vars(record).items() if name not in _OWN)
        if record.exc_info and record.exc_info[2]:
            # Only the location is logged; the text of the exception could repeat a value.
            frames = traceback.extract_tb(record.exc_info[2])
            line["at"] = [f"{frame.name}:{frame.lineno}" for frame in frames[-5:]]
        return json.dumps(line, default=str)


def configure_logs(level: str = "info") -> None:
    """Sends all logs of this process to standard error.

    level: the lowest level to log, which does not apply to the access log; default: info
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    access = logging.getLogger(ACCESS_LOGGER)
    # Its messages are complete lines.
    lines = logging.StreamHandler(sys.stderr)
    access.handlers = [lines]
    access.propagate = False
    access.setLevel(logging.INFO)
