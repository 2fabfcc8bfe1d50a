"""store/ has one door (store/store.h): no other room knows where it keeps what.

Looks through the sources of the rooms above for headers of its inside, and for names of its files.
"""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ["adio", "base", "bench", "engine", "hints", "plan", "service", "tools"]

# Who handles files that are not the store's: real paths, plain files, the directories that stores are in.
OTHER_FILES = {
    "engine/protocol/plain_file.h",
    "tools/dedupctl/advise.cc",
    "tools/dedupctl/catalog.cc",
    "tools/dedupctl/import.cc",
    "tools/dedupctl/mount.cc",
    "tools/dedupctl/mount_users.cc",
    "tools/dedupctl/mounted_files.cc",
    "tools/dedupctl/owner.cc",
    "tools/dedupctl/removal.cc",
    "tools/dedupctl/stores.cc",
    "tools/dedupctl/whereabouts.cc",
}

INSIDE = [
    # Its headers, and classes of theirs.
    r'#include "store/files/',
    r'#include "store/(chunk_header|shard_content|system)\.h"',
    r"\b(Segment|Log|Index|Shard)File(Reader|Writer)\b",
    r"\b(FileStore|open_leases)\b",
    # Functions that would give a path, and what its files and directories are called.
    r"\b(segment|log|index|shard|record|mark)_(path|name)\(",
    r"\b(generation|file|segments|logs)_directory\(",
    r'"/?(segments|logs|generations|marks)/?"',
    r'"[^"]*\.(seg|log)"',
    r'"/?(shard-|index|record|record\.tmp)"',
    r'"/(STORE|paths|files)"',
]
FILES = re.compile(r'#include "store/fs\.h"')

# A segment that is lent goes from one process to another as a value: of what it consists of nobody knows but the store
# and who carries it.
CARRIER = "service/wire.cc"
LENT = re.compile(r"\bdescriptor\(\)|\bLentSegment\(\w")


def findings(name, text):
    lines = [re.sub(r"//.*", "", line) for line in text.splitlines()]
    patterns = [re.compile(p) for p in INSIDE]
    patterns += [] if name in OTHER_FILES else [FILES]
    patterns += [] if name == CARRIER else [LENT]
    return [f"{name}:{i}: {line.strip()}" for i, line in enumerate(lines, 1) if any(p.search(line) for p in patterns)]


def sources():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".c", ".cc", ".h"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


def test_nobody_knows_where_the_store_keeps_what():
    looked_at, found = 0, []
    for name, text in sources():
        looked_at += 1
        found += findings(name, text)
    assert looked_at > 100
    assert found == []


@pytest.mark.parametrize("name", sorted(OTHER_FILES))
def test_who_may_handle_other_files_does(name):
    assert FILES.search((ROOT / name).read_text())


def test_who_may_carry_what_is_lent_does():
    assert LENT.search((ROOT / CARRIER).read_text())


@pytest.mark.parametrize(
    "line",
    [
        '#include "store/files/layout.h"',
        '#include "store/fs.h"',
        '#include "store/shard_content.h"',
        "auto reader = store::SegmentFileReader::open(path);",
        "return store.segment_path(identity, number);",
        "return store.segment_name(identity, number);",
        "list(store.file_directory(identity));",
        'const auto path = file + "/segments/" + name;',
        'path + "/shard-" + std::to_string(s)',
        'directory + "/index"',
        'number.hex() + ".seg"',
        "const int fd = lent.descriptor().fd();",
        "return store::LentSegment(std::move(socket));",
    ],
)
def test_is_found(line):
    assert findings("service/example.cc", line)


def test_a_comment_may_say_it():
    assert not findings("service/example.cc", '// what "/segments/" holds, see store/files/layout.h')
