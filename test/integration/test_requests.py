"""How many requests the ranks make to services: doc/service.md, "Requests of a call", has the table.

The counts come from programs/requests.c; with -s they are printed."""

import pathlib
import re

import pytest

from conftest import only_dedup

pytestmark = only_dedup

SERVICE = pathlib.Path(__file__).resolve().parents[2] / "service"


def names_of_opcodes():
    """Numbers and names of service::Opcode."""
    for header in sorted(SERVICE.rglob("*.h")):
        found = re.search(r"enum class Opcode[^{]*\{(.*?)\};", header.read_text(encoding="utf-8"), re.S)
        if found:
            break
    names, number = {}, 0
    for name, value in re.findall(r"^\s*k(\w+)(?: = (\d+))?,", found[1], re.M):
        number = int(value) if value else number + 1
        names[number] = name
    return names


@pytest.fixture(name="counts")
def fixture_counts(mpirun, stores):
    """For each step of the program and each kind of request: how many each of the ranks made."""
    result = mpirun(4, "requests", stores.name("file"), nodes=2)
    print(result.stdout)
    names = names_of_opcodes()
    counts = {}
    for line in result.stdout.splitlines():
        step, kind, *of_ranks = line.split()
        counts.setdefault(step, {})[names[int(kind)]] = [int(n) for n in of_ranks]
        print(f"{step:12} {names[int(kind)]:16} {of_ranks}")
    return counts


ONE = [1, 0, 0, 0]  # rank 0 for all
EACH = [1, 1, 1, 1]


def of_file_home(counts):
    kinds = {"OpenBegin", "OpenEnd", "CloseBegin", "CloseEnd", "GetFile", "GetSize", "ExtendSize",
             "SetSize", "Lock", "Unlock", "CommitDone", "SetAside", "NextGeneration"}
    return {kind: of_ranks for kind, of_ranks in counts.items() if kind in kinds}


def test_one_rank_asks_the_file_home_for_all(counts):
    assert of_file_home(counts["open"]) == {"OpenBegin": ONE, "OpenEnd": ONE}
    for write in ("first-write", "write", "write-again"):
        assert of_file_home(counts[write]) == {"Lock": ONE, "Unlock": ONE}
    assert of_file_home(counts["read"]) == {"GetSize": ONE}
    assert of_file_home(counts["small-read"]) == {"GetSize": ONE}
    assert of_file_home(counts["read-alone"]) == {"GetSize": EACH}
    assert of_file_home(counts["small-write"]) == {"ExtendSize": ONE}
    assert of_file_home(counts["sync"]) == {
        "Lock": ONE, "GetSize": ONE, "NextGeneration": ONE, "CommitDone": ONE, "Unlock": ONE}
    assert of_file_home(counts["close"]) == {
        "Lock": ONE, "GetSize": ONE, "NextGeneration": ONE, "CommitDone": ONE, "Unlock": ONE,
        "CloseBegin": ONE, "CloseEnd": ONE}
