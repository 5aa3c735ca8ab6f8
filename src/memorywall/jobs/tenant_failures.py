"""Failures of a job in one tenant, which affect no other tenant."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_log = logging.getLogger("memorywall.jobs")


@contextmanager
def isolate_tenant(job: str, tenant: str) -> Iterator[None]:
    """Logs an error of a job in a tenant and suppresses it, so that the job continues with the next
    tenant."""
    try:
        yield
    except Exception as error:
        log_failure(job, tenant, error)


def log_failure(job: str, tenant: str, error: Exception) -> None:
    """Logs that a job failed in a tenant. The text of the error may contain data, so the log has
    its type only."""
    _log.warning("job failed", extra={"job": job, "tenant": tenant, "error": type(error).__name__})
