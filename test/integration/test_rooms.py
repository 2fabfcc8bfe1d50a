"""The rooms of doc/design.md: which headers each may include.

What a header alone uses does not show where rooms are linked (test/rooms in engine/local.mk).
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPI = "<mpi.h>"

# What each room may include besides itself. The most specific room counts.
CORE = ["base/", "hints/", "plan/", "store/", "service/"]
ROOMS = {
    "base/": [],
    "hints/": ["base/"],
    "plan/": ["base/"],
    "store/": ["base/", "plan/block.h", "plan/placement.h"],
    "service/": ["base/", "hints/", "plan/", "store/"],
    "engine/protocol/": CORE,
    "engine/chunks/": CORE,
    "engine/mpi/": [*CORE, "engine/protocol/", MPI],
    "engine/dump/": [*CORE, "engine/protocol/", "engine/chunks/", "engine/mpi/", MPI],
    "engine/": [*CORE, "engine/protocol/", "engine/chunks/", "engine/mpi/", "engine/dump/", MPI],
    "tools/": ["base/", "hints/", "plan/", "store/", "service/client.h", "service/job_services.h",
               "engine/protocol/held_file.h", "engine/admin.h", "engine/mpi/comm_ranks.h", MPI],
    "bench/data/": ["base/"],
    "adio/": ["engine/dedup.h", MPI],
    "hdf5/": ["engine/dedup.h", MPI],
}


def room_of(path):
    rooms = [room for room in ROOMS if path.startswith(room)]
    return max(rooms, key=len) if rooms else None


def includes(text):
    """Headers of this project, and MPI's."""
    for name in re.findall(r'^\s*#\s*include\s+(<mpi\.h>|"[^"]+")', text, re.MULTILINE):
        yield name if name == MPI else name.strip('"')


def may_include(room, header):
    allowed = ROOMS[room]
    if header == MPI or header in allowed:
        return header in allowed
    return room_of(header) in [room, *allowed]


def violations(files):
    """`files`: path and text of each."""
    found = []
    for path, text in files:
        room = room_of(path)
        found += [f"{path} includes {header}" for header in includes(text)
                  if (header == MPI or room_of(header)) and not may_include(room, header)]
    return found


def sources():
    for room in {room.split("/")[0] for room in ROOMS}:
        for path in sorted((ROOT / room).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".c", ".cc", ".h") and room_of(name):
                yield name, path.read_text()


def test_rooms_include_only_what_they_may():
    files = list(sources())
    assert {room_of(path) for path, _ in files} == set(ROOMS), "a room is empty"
    assert not violations(files)


def test_what_they_may_not_is_seen():
    files = [
        ("plan/x.cc", '#include "plan/y.h"\n#include "service/client.h"\n'),
        ("engine/chunks/x.h", '#include "engine/chunks/y.h"\n#include <mpi.h>\n'),
        ("engine/protocol/x.h", '#include "engine/chunks/y.h"\n#include "store/store.h"\n'),
        ("engine/dump/x.cc", '#include "engine/dump/y.h"\n#include "engine/file_handle.h"\n'),
        ("tools/dedupctl/x.cc", '#include "engine/admin.h"\n#include "engine/dedup.h"\n'),
    ]
    assert violations(files) == [
        "plan/x.cc includes service/client.h",
        "engine/chunks/x.h includes <mpi.h>",
        "engine/protocol/x.h includes engine/chunks/y.h",
        "engine/dump/x.cc includes engine/file_handle.h",
        "tools/dedupctl/x.cc includes engine/dedup.h",
    ]


# Where a chunk is, is a plan::Placement, and only plan/ counts what of it is left.
COUNTING = re.compile(
    r"\b(?:vector|set|map|Numbered)<(?:Fingerprint, )?NodeSet\b"  # places of chunks as sets of nodes
    r"|(?<!topology)(?<!topology_)(?:\.|->)nodes\(\)\s*"
    r"\.\s*(?:size|empty|r?begin|r?end|front|back)\("
    r"|\bholders\s*(?:\.|->)\s*size\("
    r"|(?:\.|->)fatal\b"
    r"|(?<!->)(?:[<>]=?|[=!]=|[-+*/%])\s*[\w.>()\[\]-]+(?:\.|->)as_copies\(\)"  # it is to be shown
    r"|(?:\.|->)as_copies\(\)\s*(?:[<>]=?|[=!]=|[-+*/%])"
    r"|\bcopies\(\)\s*;\s*(?:\+\+\w+|\w+\+\+)"  # a loop over copies chooses nodes
)


def test_only_plan_counts_copies():
    found = [(path, match.group()) for path, text in sources() if room_of(path) != "plan/"
             for match in COUNTING.finditer(text)]
    assert not found


def test_counting_is_seen():
    for text in (
        "std::vector<NodeSet> holders;",
        "std::map<Fingerprint, NodeSet> lacking;",
        "if (placement.nodes().size() < copies)",
        "while (block.placements[i].nodes().empty())",
        "if (holders.size() >= state_.copies)",
        "if (placement.redundancy().fatal < 2)",
        "const std::size_t needed = stores - kept.fatal + 1;",
        "if (placement.redundancy().as_copies() < 2)",
        "const std::size_t needed = stores - kept.as_copies() + 1;",
        "placement.is_on(self_) && placement.nodes().back() < nodes_",
        "for (unsigned i = 0; i < file_.copies(); ++i) {",
    ):
        assert COUNTING.search(text), text
