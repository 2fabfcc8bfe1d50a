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
SIDES = {"dedup:": "`dedup:`", "ufs:": "`ufs:`", "empty": "`ufs:`, without data", "least": "the least"}


def run(bench):
    repeats = 1 if bench.quick else 5
    for medium in ("tmpfs", "disk"):
        many_files(bench, checkpoint.Site(bench, medium), repeats)
    open_again(bench, checkpoint.Site(bench, "tmpfs"), repeats)


def least(bench, medium, *options):
    """What it takes at least (bench/programs/rounds.cc)."""
    with bench.scratch_for_now(medium) as directory:
        return json.loads(bench.run([bench.program("rounds"), directory, *options]))


def added(*sides):
    """Of each repetition what these take together."""
    return [sum(each) for each in zip(*sides)]


def many_files(bench, site, repeats):
    files = 8 if bench.quick else FILES

    def job(prefix, options, size=64 * KIB):
        site.clear()
        # Without flushes: `ufs:` has none either.
        out = bench.dedup_mpiexec(RANKS, RANKS, [bench.program("small_files"), site.name(prefix), "--files", files,
                                                 "--bytes", size, *options],
                                  {"replication": 1, "fsync": "never"}, site.stores)
        site.clear()
        return json.loads(out)

    for how, options in HOW.items():
        lines = bench.alternate({
            **{prefix: lambda prefix=prefix: job(prefix, options) for prefix in ("dedup:", "ufs:")},
            "empty": lambda: job("ufs:", options, 0),
            "least": lambda: least(bench, site.medium, "--nodes", RANKS, "--clients", RANKS if options else 1, "--files", files)},
            repeats)
        for side, found in lines.items():
            bench.record(kind="small", what="many", how=how, side=SIDES[side], medium=site.medium, files=files,
                         seconds=statistics.summary([line["seconds"] for line in found]))

        seconds = {side: [line["seconds"] for line in found] for side, found in lines.items()}
        bound = statistics.ratio(added(seconds["least"], seconds["empty"]), seconds["ufs:"])
        bench.target(what=f"{files} files of 64 KiB, {how} of {RANKS}, created, written, closed, against `ufs:`: time",
                     measured=statistics.ratio(seconds["dedup:"], seconds["ufs:"]), limit=3, bound=bound["median"], medium=site.medium, replication=1,
                     fsync="never", flush="none", cache="warm", bytes_a_rank=files * 64 * KIB // RANKS, peer=1,
                     overview=f"many files of 64 KiB, {how}, to `ufs:`")


def open_again(bench, site, repeats):
    times = 2 if bench.quick else TIMES

    def job(prefix, nodes):
        site.clear()
        out = bench.dedup_mpiexec(nodes, nodes, [bench.program("small_files"), site.name(prefix), "--files", times,
                                                 "--bytes", 1 << 20, "--again"],
                                  {"replication": 2}, site.stores)
        site.clear()
        return json.loads(out)

    for nodes in (2, 8) if bench.quick else (8, 64):
        lines = bench.alternate({
            **{prefix: lambda prefix=prefix, nodes=nodes: job(prefix, nodes) for prefix in ("dedup:", "ufs:")},
            "least": lambda nodes=nodes: least(bench, site.medium, "--nodes", nodes, "--files", times, "--bytes", 1, "--again")},
            repeats)
        processor = {side: [1e3 * line["processor_seconds"] / times / nodes for line in found] for side, found in lines.items()}
        of_a_node = {side: statistics.summary(found) for side, found in processor.items()}
        bench.record(kind="small", what="again", nodes=nodes, times=times, medium=site.medium,
                     milliseconds=statistics.summary([1e3 * line["seconds"] / times for line in lines["dedup:"]]),
                     processor=of_a_node["dedup:"], ufs=of_a_node["ufs:"], least=of_a_node["least"])
        bench.target(what=f"a file of 1 MiB opened, a byte of it written, closed, {nodes} nodes: milliseconds of a processor, a node",
                     measured=of_a_node["dedup:"], bound=statistics.summary(added(processor["ufs:"], processor["least"]))["median"],
                     limit=1, medium=site.medium, replication=2, fsync="commit", flush="none", cache="warm",
                     bytes_a_rank=(1 << 20) // nodes, overview=f"open, a byte, close, {nodes} nodes: ms of a processor, a node")


def tables(records):
    found = [r for r in records if r["kind"] == "small"]
    many = [[r["medium"], r["how"], r["side"], text.spread(r["seconds"])] for r in found if r["what"] == "many"]
    again = [[r["nodes"], text.spread(r["milliseconds"]), text.spread(r["processor"]), text.spread(r["ufs"]), text.spread(r["least"])]
             for r in found if r["what"] == "again"]
    files = next(r["files"] for r in found if r["what"] == "many")
    return [(f"{files} files of 64 KiB, {RANKS} ranks on as many nodes, K = 1, nothing flushed: seconds",
             ["medium", "written", "by", "all"], many),
            ("A file of 1 MiB, opened, one byte of it written, and closed, which commits it; a rank a node, K = 2, tmpfs",
             ["nodes", "ms", "ms of a processor, a node", "`ufs:`", "the least"], again)]


def figures(records):
    return []
