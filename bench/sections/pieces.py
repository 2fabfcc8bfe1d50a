"""Reading and writing in many calls, as IOR does, against ROMIO's own driver."""

import json

from harness import checkpoint, statistics, text

TITLE = "In many calls"
ORDER = 62

MIB = 1 << 20
KIB = 1 << 10
RANKS = 2
NODES = 2
# What a call has, and whether ranks take turns in the file; bytes a rank, and what must be of the rate of `ufs:`.
PATTERNS = {"1 MiB at a time": (MIB, False, 128 * MIB, 0.8, 0.7),
            "128 KiB in turns": (128 * KIB, True, 32 * MIB, 0.6, 0.6),
            "256 KiB in turns": (256 * KIB, True, 32 * MIB, 0.6, 0.6)}


def run(bench):
    repeats = 1 if bench.quick else 7
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        for name, (piece, strided, bytes_a_rank, *limits) in PATTERNS.items():
            for collective in (False, True):
                said = f"{name}, {'collective' if collective else 'independent'}"
                bench.say(f"{said}, {medium}")
                measure(bench, medium, said, 2 * piece if bench.quick else bytes_a_rank, repeats,
                        limits[0 if medium == "tmpfs" else 1],
                        ["--piece", piece, *(["--strided"] if strided else []),
                         *(["--collective"] if collective else []), *(["--sync"] if medium == "disk" else [])])


def measure(bench, medium, name, bytes_a_rank, repeats, limit, options):
    site = checkpoint.Site(bench, medium)
    words = [bench.program("pieces"), "--bytes", bytes_a_rank, *options]

    def job(prefix, *more):
        return json.loads(bench.dedup_mpiexec(NODES, RANKS, [*words, *more, site.name(prefix, prefix[:-1])],
                                              {"replication": 1}, site.stores,
                                              touches=4 * RANKS * bytes_a_rank))

    def fresh(prefix):
        site.clear()
        return job(prefix, "--no-read")["write"]["total"]

    written = bench.alternate({prefix: lambda prefix=prefix: fresh(prefix) for prefix in ("dedup:", "ufs:")}, repeats)
    site.clear()
    for prefix in ("dedup:", "ufs:"):
        job(prefix, "--no-read")
    read = bench.alternate({prefix: lambda prefix=prefix: job(prefix, "--no-write")["read"]["total"]
                            for prefix in ("dedup:", "ufs:")}, repeats)
    for what, found, target in (("write", written, None), ("read", read, limit)):
        for prefix, seconds in found.items():
            bench.record(kind="pieces", name=name, medium=medium, what=what, side=prefix,
                         bytes=RANKS * bytes_a_rank, seconds=statistics.summary(seconds))
        # Of rates: theirs in seconds over ours in seconds.
        bench.target(what=f"{name}, {RANKS} ranks on {NODES} nodes, {what}: rate, as a share of that of `ufs:`",
                     limit=target, at_least=True, measured=statistics.ratio(found["ufs:"], found["dedup:"]),
                     medium=medium, replication=1, fsync="commit", flush="none",
                     cache="warm" if what == "read" else "–", bytes_a_rank=bytes_a_rank)
    site.clear()


def tables(records):
    rows = [[r["name"], r["medium"], r["what"], f"`{r['side']}`", text.spread(r["seconds"]),
             text.rate(r["bytes"] / r["seconds"]["median"])] for r in records if r["kind"] == "pieces"]
    return [(f"{RANKS} ranks on {NODES} nodes, K = 1, each reads what the other one wrote: seconds, open to close",
             ["calls", "medium", "what", "side", "seconds", "rate"], rows)]


def figures(records):
    return []
