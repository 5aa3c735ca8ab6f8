"""Runs of background jobs in this process, for lists of jobs and for metrics."""

from __future__ import annotations

from collections import Counter

from memorywall.records.clock import format_instant


class JobRuns:
    """Remembers when jobs last looked for work, and how many of their runs failed.

    A run that finds nothing to do writes nothing, because an idle server would write all the time:
    its instant is in the memory of this process only. Instants are in milliseconds since the epoch.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}
        self._errors: Counter[str] = Counter()

    def note(self, job: str, moment: int) -> None:
        """Remembers that a job ran in a tenant."""
        self._last[job] = moment

    def note_idle(self, job: str, tenant: str, moment: int) -> None:
        """Remembers that a job found nothing to do in a tenant."""
        self._idle[tenant, job] = self._last[job] = moment

    def note_error(self, job: str) -> None:
        """Counts a run that failed."""
        self._errors[job] += 1

    def idle_at(self, job: str, tenant: str) -> str:
        """The instant at which a job last found nothing to do in a tenant, in the stored form; ""
        for never."""
        moment = self._idle.get((tenant, job))
        return "" if moment is None else format_instant(moment)

    def measure(self) -> list[tuple[str, float | None, int]]:
        """Each job that ran, sorted by name: the last run in any tenant that did not fail, in
        seconds since the epoch, None for none, and the number of failed runs since the start."""
        return [
            (job, self._last[job] / 1000 if job in self._last else None, self._errors[job])
            for job in sorted({*self._last, *self._errors})
        ]
