"""Small files, many of them, and what it costs to open one again."""

import json

from harness import checkpoint, statistics, text

TITLE = "Small files"
ORDER = 68

KIB = 1 << 10
RANKS = 4
FILES = 1000
TIMES = 50  # one file is opened
HOW = {"each by one rank": ["--alone"], "each by all ranks": []}
SIDES = {"dedup:": "`dedup:`", "ufs:": "`ufs:`", "least": "the least"}


def run(bench):
    repeats = 1 if bench.quick else 5
    for medium in ("tmpfs", "disk"):
        many_files(bench, checkpoint.Site(bench, medium), repeats)
    open_again(bench, checkpoint.Site(bench, "tmpfs"), repeats)


def least(bench, medium, *options):
    """What it takes at least (bench/programs/rounds.cc)."""
    with bench.scratch_for_now(medium) as directory:
        return json.loads(bench.run([bench.program("rounds"), directory, *options]))


def many_files(bench, site, repeats):
    files = 8 if bench.quick else FILES

    def job(prefix, options):
        site.clear()
        # Without flushes: `ufs:` has none either.
        out = bench.dedup_mpiexec(RANKS, RANKS, [bench.program("small_files"), site.name(prefix), "--files", files,
                                                 "--bytes", 64 * KIB, *options],
                                  {"replication": 1, "fsync": "never"}, site.stores)
        site.clear()
        return json.loads(out)

    for how, options in HOW.items():
        lines = bench.alternate({
            **{prefix: lambda prefix=prefix: job(prefix, options) for prefix in ("dedup:", "ufs:")},
            "least": lambda: least(bench, site.medium, "--nodes", RANKS, "--clients", RANKS if options else 1, "--files", files)},
            repeats)
        for side, found in lines.items():
            bench.record(kind="small", what="many", how=how, side=SIDES[side], medium=site.medium, files=files,
                         seconds=statistics.summary([line["seconds"] for line in found]))

        def to_ufs(side):
            return statistics.ratio(*([line["seconds"] for line in lines[one]] for one in (side, "ufs:")))

        bench.target(what=f"{files} files of 64 KiB, {how} of {RANKS}, created, written, closed, against `ufs:`: time",
                     measured=to_ufs("dedup:"), limit=3, bound=to_ufs("least")["median"], medium=site.medium, replication=1,
                     fsync="never", flush="none", cache="warm", bytes_a_rank=files * 64 * KIB // RANKS, peer=1,
                     overview=f"many files of 64 KiB, {how}, to `ufs:`")


def open_again(bench, site, repeats):
    times = 2 if bench.quick else TIMES

    def job(nodes):
        site.clear()
        out = bench.dedup_mpiexec(nodes, nodes, [bench.program("small_files"), site.name(), "--files", times,
                                                 "--bytes", 1 << 20, "--again"],
                                  {"replication": 2}, site.stores)
        site.clear()
        return json.loads(out)

    def milliseconds(found, nodes):
        return statistics.summary([1e3 * line["processor_seconds"] / times / nodes for line in found])

    for nodes in (2, 8) if bench.quick else (8, 64):
        lines = bench.alternate({
            "dedup:": lambda nodes=nodes: job(nodes),
            "least": lambda nodes=nodes: least(bench, site.medium, "--nodes", nodes, "--files", times, "--bytes", 1, "--again")},
            repeats)
        bound = milliseconds(lines["least"], nodes)
        bench.record(kind="small", what="again", nodes=nodes, times=times, medium=site.medium,
                     milliseconds=statistics.summary([1e3 * line["seconds"] / times for line in lines["dedup:"]]),
                     processor=milliseconds(lines["dedup:"], nodes), least=bound)
        bench.target(what=f"a file of 1 MiB opened, a byte of it written, closed, {nodes} nodes: milliseconds of a processor, a node",
                     measured=milliseconds(lines["dedup:"], nodes), bound=bound["median"],
                     limit=1, medium=site.medium, replication=2, fsync="commit", flush="none", cache="warm",
                     bytes_a_rank=(1 << 20) // nodes, overview=f"open, a byte, close, {nodes} nodes: ms of a processor, a node")


def tables(records):
    found = [r for r in records if r["kind"] == "small"]
    many = [[r["medium"], r["how"], r["side"], text.spread(r["seconds"])] for r in found if r["what"] == "many"]
    again = [[r["nodes"], text.spread(r["milliseconds"]), text.spread(r["processor"]), text.spread(r["least"])]
             for r in found if r["what"] == "again"]
    files = next(r["files"] for r in found if r["what"] == "many")
    return [(f"{files} files of 64 KiB, {RANKS} ranks on as many nodes, K = 1, nothing flushed: seconds",
             ["medium", "written", "by", "all"], many),
            ("A file of 1 MiB, opened, one byte of it written, and closed, which commits it; a rank a node, K = 2, tmpfs",
             ["nodes", "ms", "ms of a processor, a node", "the least"], again)]


def figures(records):
    return []
