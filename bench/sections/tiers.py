"""Memory first: a store with a memory tier for half of the data, and a disk for the rest."""

import json

from harness import checkpoint, statistics, text

TITLE = "A memory tier in front of a disk"
ORDER = 69

MIB = 1 << 20
# A tier is filled up to so much of its limit.
MARK = 0.8


def run(bench):
    fast = checkpoint.Site(bench, "tmpfs")
    slow = checkpoint.Site(bench, "disk")
    size = (32 if bench.quick else 512) * MIB
    limit = int(size / 2 / MARK)
    places = {"memory alone": fast.stores, "disk alone": slow.stores,
              "memory for half": f"{fast.stores}={limit}:{slow.stores}"}

    def clear():
        fast.clear()
        slow.clear()

    def job(place):
        clear()
        # What repeats would be stored once, and no tier takes copies of one node's.
        words = [bench.program("checkpoint"), slow.name(), "--profile", "unique", "--bytes", size]
        line = json.loads(bench.dedup_mpiexec(1, 1, [*words, "--no-read"], {"replication": 1}, place, touches=2 * size))
        line["tiers"] = [bytes_in(site) for site in (fast, slow)]
        read = json.loads(bench.dedup_mpiexec(1, 1, [*words, "--no-write"], {}, place))
        if read["checked_bytes"] != size:
            raise AssertionError(f"{read['checked_bytes']} of {size} bytes were compared")
        clear()
        return line

    lines = bench.alternate({name: lambda place=place: job(place) for name, place in places.items()},
                            1 if bench.quick else 7)
    for name, found in lines.items():
        bench.record(kind="tiers", way=name, bytes=size, limit=limit,
                     seconds=statistics.summary([line["write"]["total"] for line in found]),
                     tiers=[statistics.median([line["tiers"][tier] for line in found]) for tier in (0, 1)])
    ratios = [two["write"]["total"] /
              (memory["write"]["total"] * two["tiers"][0] / size + disk["write"]["total"] * two["tiers"][1] / size)
              for two, memory, disk in zip(*(lines[name] for name in ("memory for half", "memory alone", "disk alone")))]
    bench.target(what="memory tier for half of the data: time over (bytes of each tier / its rate)",
                 measured=statistics.summary(ratios), limit=1.1, medium="disk", replication=1, fsync="commit",
                 flush="none", cache="warm", bytes_a_rank=size,
                 overview="memory tier for half of the data: time, to the bytes of each tier at its rate")


def bytes_in(site):
    return sum(path.stat().st_size for path in site.stores.rglob("*.seg"))


def tables(records):
    found = [r for r in records if r["kind"] == "tiers"]
    rows = [[r["way"], *(text.size(tier) for tier in r["tiers"]), text.spread(r["seconds"])] for r in found]
    return [(f"{text.size(found[0]['bytes'])} written by one rank and committed, K = 1, flushed; the memory tier's limit is "
             f"{text.size(found[0]['limit'])}, of which four fifths are filled: seconds",
             ["store", "in memory", "on disk", "open, write, close"], rows)]


def figures(records):
    return []
