"""The background jobs that every process can run, regardless of its options."""

from __future__ import annotations

from typing import Final

from memorywall.jobs.end_sessions import END_SESSIONS_JOB
from memorywall.jobs.expire_entries import EXPIRE_JOB
from memorywall.jobs.expire_leases import END_LEASES_JOB
from memorywall.jobs.job_runner import JobSpec
from memorywall.jobs.judge_items import JUDGE_JOB
from memorywall.jobs.migrate_facts import MIGRATE_FACTS_JOB
from memorywall.jobs.remove_old_rows import PRUNE_JOB
from memorywall.jobs.reseal import RESEAL_JOB
from memorywall.jobs.seal import SEAL_JOB
from memorywall.jobs.write_segments import SEGMENTS_JOB
from memorywall.recall.embedding_lag import EMBED

JOBS: Final[tuple[JobSpec, ...]] = (
    EXPIRE_JOB,
    PRUNE_JOB,
    END_LEASES_JOB,
    END_SESSIONS_JOB,
    JUDGE_JOB,
    MIGRATE_FACTS_JOB,
    SEAL_JOB,
    RESEAL_JOB,
    SEGMENTS_JOB,
)

JOB_NAMES: Final = (*(spec.name for spec in JOBS), EMBED)
"""All jobs. A server with an embedder additionally runs embedding whenever entries change."""
