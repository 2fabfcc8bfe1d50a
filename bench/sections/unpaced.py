"""The three modes on 16 nodes, as fast as this machine is, against what its rates allow."""

from harness import checkpoint, statistics, text
from sections import rates

TITLE = "Collective against local and none, unpaced"
ORDER = 65
NEEDS = ["rates"]

MIB = 1 << 20
CHUNK = 4096
NODES = 16
REPLICATION = 3
MODES = ["none", "local", "collective"]
PROFILES = {"hpccg-408": "HPCCG at 408 ranks", "hpccg-16": "HPCCG at 16 ranks"}


def collective(records, profile, medium):
    """What was measured of the mode collective with this data."""
    return next(r for r in records if r["kind"] == "unpaced" and r["mode"] == "collective"
                and r["profile"] == profile and r["medium"] == medium)


def measure(bench, medium, profile, bytes_a_rank, repeats):
    bench.say(f"{profile}, {medium}")
    site = checkpoint.Site(bench, medium)
    variants = {mode: lambda mode=mode: site.write(
        NODES, NODES, ["--profile", profile, "--bytes", bytes_a_rank],
        {"mode": mode, "replication": REPLICATION}) for mode in MODES}
    # What does not depend on the bytes.
    variants["one chunk"] = lambda: site.write(
        NODES, NODES, ["--profile", profile, "--bytes", CHUNK], {"replication": REPLICATION})
    # The store's own rate, in turn with what is compared with it: a disk's changes by the minute.
    variants["store"] = lambda: rates.store(bench, medium, bytes_a_rank, ranks=NODES)
    found = bench.alternate(variants, repeats)
    store_rate = statistics.median(found["store"])
    of_machine = bench.records("rates")
    for mode in MODES:
        lines = found[mode]
        bench.record(kind="unpaced", profile=profile, medium=medium, mode=mode, nodes=NODES,
                     ranks=NODES, replication=REPLICATION, bytes_a_rank=bytes_a_rank, fsync=True,
                     seconds=statistics.summary([line["write"]["total"] for line in lines]),
                     bound_seconds=rates.bound_seconds(of_machine, lines[0], store_rate, medium),
                     stored=checkpoint.total(lines[0], "bytes_stored"),
                     phases=checkpoint.phases(lines))
    bench.record(kind="unpaced fixed", profile=profile, medium=medium, nodes=NODES, ranks=NODES,
                 replication=REPLICATION, bytes_a_rank=CHUNK, fsync=True,
                 seconds=statistics.summary(
                     [line["write"]["total"] for line in found["one chunk"]]))
    mine = collective(bench.records(), profile, medium)
    bench.target(what=f"mode collective, unpaced, data like {PROFILES[profile]}, {NODES} nodes of one "
                 "rank: time, as a multiple of its bound", limit=2, bound=1.0,
                 measured=statistics.summary([s / mine["bound_seconds"]
                                              for s in mine["seconds"]["samples"]]),
                 medium=medium, replication=REPLICATION, fsync="commit", flush="none", cache="–",
                 bytes_a_rank=bytes_a_rank, overview=f"collective, unpaced, data like {PROFILES[profile]}, to its bound")


def run(bench):
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        for profile in PROFILES:
            if bench.quick and profile != "hpccg-16":
                continue
            mib = 1 if bench.quick else 32 if medium == "tmpfs" else 16
            measure(bench, medium, profile, mib * MIB, 1 if bench.quick else 3)


def tables(records):
    found = [r for r in records if r["kind"] == "unpaced"]
    rows = []
    for r in found:
        mine = collective(records, r["profile"], r["medium"])
        rows.append([r["profile"], r["medium"], text.size(r["bytes_a_rank"]), r["mode"],
                     text.spread(r["seconds"]), text.number(r["bound_seconds"]),
                     f"{r['seconds']['median'] / mine['seconds']['median']:.2f}",
                     f"{r['bound_seconds'] / mine['bound_seconds']:.2f}",
                     f"{r['stored'] / mine['stored']:.2f}"])
    fixed = []
    for r in (r for r in records if r["kind"] == "unpaced fixed"):
        bound = collective(records, r["profile"], r["medium"])["bound_seconds"]
        fixed.append([r["profile"], r["medium"], text.spread(r["seconds"]), text.number(bound),
                      f"{r['seconds']['median'] / bound:.2f}"])
    return [(f"{NODES} nodes of one rank, K = {REPLICATION}: seconds, and as multiples of the mode collective's",
             ["data", "medium", "a rank", "mode", "seconds", "bound", "times coll.",
              "bound", "bytes stored"], rows),
            ("Opening, writing 4 KiB a rank and closing, beside the bound of the mode collective "
             "with all of the data", ["data", "medium", "seconds", "bound", "multiple"], fixed),
            checkpoint.phase_table([(f"{r['profile']}, {r['medium']}, {r['mode']}", r["phases"])
                                    for r in found])]


def figures(records):
    return []
