"""The tests of the surfaces run on both stores; what is left out on PostgreSQL is written here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.extent import CHAOS

REPOSITORY = Path(__file__).parents[1]

# Tests about the file of SQLite, and those that would say the same again.
LEFT_OUT = {
    "tests/adapters/test_mcp_graph.py": {
        "test_a_client_that_has_seen_an_entity_does_not_replace_it",
        "test_a_file_of_the_reference_server_is_imported",
    },
    "tests/adapters/test_mcp_transports.py": {"test_a_host_starts_it_on_a_directory"},
    "tests/cli/test_administration.py": {"test_looking_does_not_make_a_database"},
    "tests/cli/test_doctor.py": {"test_damage_and_another_schema_are_found_without_a_change"},
    "tests/cli/test_serve.py": {
        "test_a_directory_that_is_served_is_not_opened_by_a_client",
        "test_file_that_is_not_a_database_is_refused",
        "test_second_server_is_refused_and_the_first_continues",
        "test_an_empty_file_is_no_database_to_verify",
        "test_database_of_another_program_is_refused_unchanged",
    },
    "tests/cli/test_workflow.py": {"test_it_does_not_run_where_a_server_is"},
    "tests/http/test_sealing.py": {"test_the_database_file_is_for_its_owner_alone"},
    "tests/openwop/test_open_runs.py": {"test_a_killed_server_leaves_whole_runs"},
    "tests/oracle/test_access.py": {
        "test_a_fault_planted_at_work_is_found",
        "test_a_fault_planted_in_writes_by_name_is_found",
        "test_a_planted_fault_is_found",
        "test_nothing_is_found_at_work_without_a_defect",
        "test_nothing_is_found_without_a_defect",
    },
    "tests/oracle/test_groups.py": {
        "test_a_fault_planted_in_groups_is_found",
        "test_nothing_is_found_in_groups_without_a_defect",
    },
    "tests/oracle/test_sessions.py": {
        "test_a_fault_planted_in_sessions_is_found",
        "test_nothing_is_found_in_sessions_without_a_defect",
    },
    "tests/test_sdk_in_session.py": {"test_client_in_process_works_inside_a_session"},
    "tests/test_sdk_local.py": {
        "test_a_data_directory_is_opened_as_the_server_opens_it",
        "test_a_file_is_open_once",
        "test_clients_of_one_process_share_a_file",
        "test_a_path_that_ends_in_a_separator_is_a_data_directory",
        "test_requests_after_a_failed_opening_try_again",
    },
    "tests/test_sdk_working.py": {"test_the_beginning_of_the_page_runs"},
    "tests/test_verify.py": {"test_an_index_of_the_database_that_lacks_a_row_is_reported"},
    "tests/test_verify_digests.py": {"test_a_page_that_cannot_be_read_is_reported"},
}
_DAMAGE = "tests/test_verify.py::test_damage_is_reported_by_its_kind"
# Damage to what only one of the stores has.
OF_ONE_STORE = {
    f"{_DAMAGE}[a tag that is counted wrong]",
    f"{_DAMAGE}[a head that is before the end of the log]",
}


def _suites() -> list[str]:
    """The tests that the Makefile runs on both stores."""
    made = subprocess.run(
        ["make", "--silent", "--no-print-directory", "on-both"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
        # The make that runs the tests has said something to its own.
        env={name: value for name, value in os.environ.items() if "MAKE" not in name},
    )  # fmt: skip
    return made.stdout.split()


def _collected(store: str) -> set[str]:
    """The tests that would run on a store."""
    printed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--store", store, *_suites()],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert printed.returncode == 0, printed.stdout[-2_000:] + printed.stderr
    return {line for line in printed.stdout.splitlines() if "::" in line}


def test_what_this_run_leaves_out_on_postgresql_is_written_here(
    request: pytest.FixtureRequest,
) -> None:
    suites = _suites()
    for item in request.session.items:
        file, _, test = item.nodeid.partition("::")
        if item.get_closest_marker("sqlite") and file.startswith(tuple(suites)):
            assert test.partition("[")[0] in LEFT_OUT.get(file, ()), item.nodeid


# Collecting all of them twice takes as long as a hundred tests.
if CHAOS:

    def test_nothing_else_is_left_out_on_postgresql() -> None:
        on_sqlite, on_postgres = _collected("sqlite"), _collected("postgres")
        assert len(on_postgres) > 2_000
        left_out: dict[str, set[str]] = {}
        for name in (on_sqlite ^ on_postgres) - OF_ONE_STORE:
            assert name in on_sqlite, name
            file, _, test = name.partition("::")
            left_out.setdefault(file, set()).add(test.partition("[")[0])
        assert left_out == LEFT_OUT
        # All that such a test can be given is left out.
        assert not [
            name
            for name in on_postgres
            if re.sub(r"\[.*", "", name.partition("::")[2]) in LEFT_OUT.get(name.split("::")[0], ())
        ]
