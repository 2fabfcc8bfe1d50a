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
# After the commit: of what is new, and of what is in the generation that was committed.
WRITES = ("first-write", "write", "write-again", "changed", "committed")


def of_file_home(counts):
    kinds = {"OpenBegin", "OpenEnd", "CloseBegin", "CloseEnd", "GetFile", "GetSize", "ExtendSize",
             "SetSize", "Lock", "Unlock", "CommitDone", "SetAside", "NextGeneration"}
    return {kind: of_ranks for kind, of_ranks in counts.items() if kind in kinds}


def test_one_rank_asks_the_file_home_for_all(counts):
    assert of_file_home(counts["open"]) == {"OpenBegin": ONE, "OpenEnd": ONE}
    for write in WRITES:
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


def namings(counts, kinds):
    """How many requests of these kinds each rank made. One has room for all of its 256 chunks."""
    return [sum(of_rank) for of_rank in zip([0] * 4, *(counts.get(kind, [0] * 4) for kind in kinds))]


def test_a_chunk_is_named_to_its_own_node_twice_at_most(counts):
    for write in WRITES:
        named = {kind: of_ranks for kind, of_ranks in counts[write].items()
                 if kind not in of_file_home(counts[write])
                 and kind not in ("OpenSegment", "Space", "WriteChunks")}
        # Of its own chunks a rank asks once, and says where it has put them. Claims are of other
        # nodes' copies, which it has not asked about.
        assert set(named) <= {"Look", "Claim", "Register"}, (write, named)
        assert max(namings(named, {"Look", "Register"})) <= 2, (write, named)
        assert max(named.get("Look", [0])) <= 1 and max(named.get("Register", [0])) <= 1, (write, named)
    assert counts["first-write"]["Look"] == EACH
    assert counts["first-write"]["Register"] == EACH
    # What came since the commit is there; nothing is claimed, since nobody sends what others have.
    assert counts["write-again"]["Look"] == EACH
    assert "Register" not in counts["write-again"]
    assert "Register" not in counts["committed"]


def test_one_ranks_data_is_dumped_by_it_alone(counts):
    """Its copies go through the partner's service, and no other rank's hears of a chunk."""
    alone = [0, 1, 0, 0]
    assert counts["one-writes"] == {"WriteLog": alone, "ExtendSize": ONE}
    dump = {kind: counts["one-syncs"].get(kind) for kind in ("Look", "OpenSegment", "Claim", "PutChunks", "Register")}
    assert dump == {"Look": alone, "OpenSegment": alone, "Claim": None, "PutChunks": alone, "Register": alone}
    # Its own node's room, and that of the other one.
    assert counts["one-syncs"]["Space"] == [0, 2, 0, 0]
