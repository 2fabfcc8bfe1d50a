"""Reading and writing in many calls, as IOR does, against ROMIO's own driver."""

import dataclasses
import json

from harness import checkpoint, statistics, text
from sections import rates

TITLE = "In many calls"
ORDER = 62
NEEDS = ["rates"]

MIB = 1 << 20
KIB = 1 << 10
RANKS = 2
NODES = 2


@dataclasses.dataclass(frozen=True)
class Pattern:
    """What calls have, and what must be of the rate of `ufs:`, by medium: (writing, reading)."""

    name: str
    piece: int
    bytes_a_rank: int
    must: dict
    options: tuple = ()
    replication: int = 1
    ways: tuple = ("independent", "collective")


TURNS = {"tmpfs": (0.6, 0.6), "disk": (0.6, 0.6)}
PATTERNS = (
    Pattern("1 MiB at a time", MIB, 128 * MIB, {"tmpfs": (0.8, 0.8), "disk": (0.9, 0.7)}),
    Pattern("128 KiB in turns", 128 * KIB, 32 * MIB, TURNS, ("--strided",)),
    Pattern("256 KiB in turns", 256 * KIB, 32 * MIB, TURNS, ("--strided",)),
    Pattern("a file for each rank", MIB, 128 * MIB, {"tmpfs": (0.4, None), "disk": (0.45, None)}, ("--own",), 2,
            ("independent",)),
)


def bounds(bench, pattern, medium, store):
    """The shares of the rate of `ufs:` that are left where only hashing, sending, storing, copying and checking take
    time: (writing, reading). A disk writes meanwhile. store: bytes a second of plain writing, of this run."""
    machine = bench.records("rates")
    each = rates.hash_seconds_a_byte(machine)
    if pattern.replication > 1:
        each += (pattern.replication - 1) / rates.rate(machine, "link")
    stored = pattern.replication / store
    write = 1 / store / rates.with_storing(each, stored, medium)
    return write, 1 / rates.checked_to_plain(machine)


def run(bench):
    repeats = 1 if bench.quick else 7
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        for pattern in PATTERNS:
            bench.say(f"{pattern.name}, {medium}")
            measure(bench, pattern, medium, 2 * pattern.piece if bench.quick else pattern.bytes_a_rank, repeats)


def measure(bench, pattern, medium, bytes_a_rank, repeats):
    site = checkpoint.Site(bench, medium)
    words = [bench.program("pieces"), "--bytes", bytes_a_rank, "--piece", pattern.piece, *pattern.options,
             *(["--sync"] if medium == "disk" else [])]

    def job(prefix, way, *more):
        return json.loads(bench.dedup_mpiexec(
            NODES, RANKS, [*words, *(["--collective"] if way == "collective" else []), *more, site.name(prefix, prefix[:-1])],
            {"replication": pattern.replication}, site.stores, touches=(2 + 2 * pattern.replication) * RANKS * bytes_a_rank))

    def fresh(prefix, way):
        site.clear()
        return job(prefix, way, "--no-read")["write"]["total"]

    sides = [(prefix, way) for way in pattern.ways for prefix in ("dedup:", "ufs:")]
    written = bench.alternate({**{side: lambda side=side: fresh(*side) for side in sides},
                               "store": lambda: rates.store(bench, medium, bytes_a_rank, ranks=RANKS)}, repeats)
    store = statistics.median(written.pop("store"))
    site.clear()
    for prefix in ("dedup:", "ufs:"):
        job(prefix, "independent", "--no-read")
    read = bench.alternate({side: lambda side=side: job(*side, "--no-write")["read"]["total"] for side in sides}, repeats)
    site.clear()
    for what, found, must, bound in zip(("write", "read"), (written, read), pattern.must[medium],
                                        bounds(bench, pattern, medium, store)):
        about = {"medium": medium, "replication": pattern.replication, "fsync": "commit", "flush": "none",
                 "cache": "warm" if what == "read" else "–", "bytes_a_rank": bytes_a_rank}
        for way in pattern.ways:
            for prefix in ("dedup:", "ufs:"):
                bench.record(kind="pieces", name=pattern.name, way=way, medium=medium, what=what, side=prefix,
                             bytes=RANKS * bytes_a_rank, seconds=statistics.summary(found[prefix, way]))
            # Of rates: theirs in seconds over ours in seconds.
            bench.target(what=f"{pattern.name}, {way}, {RANKS} ranks on {NODES} nodes, {what}: rate, as a share of that of `ufs:`",
                         limit=must, at_least=True, bound=bound, peer=1,
                         measured=statistics.ratio(found["ufs:", way], found["dedup:", way]),
                         overview=f"{what}, {pattern.name}, {way}: share of the rate of `ufs:`", **about)
        if "collective" in pattern.ways:
            bench.target(what=f"{pattern.name}, {RANKS} ranks on {NODES} nodes, {what}: collective, of the time of independent",
                         limit=1, measured=statistics.ratio(found["dedup:", "collective"], found["dedup:", "independent"]),
                         **about)


def tables(records):
    rows = [[r["name"], r["way"], r["medium"], r["what"], f"`{r['side']}`", text.spread(r["seconds"]),
             text.rate(r["bytes"] / r["seconds"]["median"])] for r in records if r["kind"] == "pieces"]
    return [(f"{RANKS} ranks on {NODES} nodes, each reads what the other one wrote: seconds, open to close",
             ["calls", "way", "medium", "what", "side", "seconds", "rate"], rows)]


def figures(records):
    return []
