"""What the reduction costs when it finds nothing, and what it gains when all is the same
(IPDPS 2013, figures 2 and 3)."""

import json
import math

from harness import checkpoint, statistics, style, text

TITLE = "The reduction at its worst and at its best"
ORDER = 50

MIB = 1 << 20
THRESHOLDS = [16, 17, 18]  # powers of two
CHUNKS = 1 << 18           # a process's, as in the paper: 1 GB in pages of 4 KiB
APPROACHES = {"full dump": "none", "local": "local", "collective": "collective"}


def reduce_once(bench, how, nodes, power, chunks, repeats):
    return json.loads(bench.dedup_mpiexec(
        nodes, nodes, [bench.program("reduction"), how, 1 << power, chunks, 1, repeats], {},
        bench.scratch("tmpfs")))


def run_worst(bench):
    for nodes in [8, 16] if bench.quick else [2, 4, 8, 16, 32, 64]:
        for power in [17] if bench.quick or nodes == 64 else THRESHOLDS:
            bench.say(f"{nodes} nodes, F = 2^{power}")
            chunks = 1 << power if bench.quick or nodes == 64 else CHUNKS
            # Counting has no threshold.
            for how in ["tree", "exact"] if power == 17 else ["tree"]:
                line = reduce_once(bench, how, nodes, power, chunks, 1 if bench.quick else 3)
                bench.record(kind="worst", how=how, nodes=nodes, ranks=nodes,
                             threshold=1 << power, chunks=chunks, replication=1,
                             seconds=statistics.summary(line["seconds"]),
                             busiest_bytes=line["busiest_bytes"],
                             busiest_messages=line["busiest_messages"],
                             busiest_merges=line["busiest_merges"])


def worst(records, power, how="tree"):
    return [r for r in records
            if r["kind"] == "worst" and r["how"] == how and r["threshold"] == 1 << power]


def run_both(bench):
    """Whole dumps with either, of data like a mini-application's."""
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (1 if bench.quick else 16) * MIB
    for ranks in [4] if bench.quick else [8, 16, 32, 64]:
        size = max(MIB, bytes_a_rank * 8 // ranks)
        for profile in ["same", "unique"]:
            found = bench.alternate(
                {how: lambda how=how, profile=profile: site.write(
                    ranks, ranks, ["--profile", profile, "--bytes", size],
                    {"reduction": how, "replication": 2})
                 for how in ("exact", "tree")}, 1 if bench.quick else 5)
            for how, lines in found.items():
                bench.record(kind="both", how=how, profile=profile, ranks=ranks, nodes=ranks,
                             replication=2, bytes_a_rank=size, medium=site.medium,
                             seconds=statistics.summary([x["write"]["total"] for x in lines]),
                             average_stored=checkpoint.average(lines[0], "bytes_stored"),
                             largest_stored=checkpoint.largest(lines[0], "bytes_stored"))


def run_best(bench):
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (1 if bench.quick else 16) * MIB
    for ranks in [2] if bench.quick else [2, 4, 8, 16]:
        found = bench.alternate(
            {name: lambda mode=mode: site.write(
                ranks, ranks, ["--profile", "same", "--bytes", bytes_a_rank],
                {"mode": mode, "replication": 1, "threshold": 1 << 18})
             for name, mode in APPROACHES.items()}, 1 if bench.quick else 3)
        for name, lines in found.items():
            bench.record(kind="best", approach=name, ranks=ranks, nodes=ranks, replication=1,
                         threshold=1 << 18, bytes_a_rank=bytes_a_rank, medium=site.medium,
                         seconds=statistics.summary([line["write"]["total"] for line in lines]),
                         average_stored=checkpoint.average(lines[0], "bytes_stored"),
                         largest_stored=checkpoint.largest(lines[0], "bytes_stored"))


def growth(records, figure):
    """How much more the busiest node has at the most nodes than at 8, divided by the ratio of the
    logarithms: 1 is growth with log2."""
    found = {r["nodes"]: r[figure] for r in worst(records, 17)}
    most = max(found)
    return found[most] / found[8] / (math.log2(most) / math.log2(8))


def run(bench):
    run_worst(bench)
    run_best(bench)
    run_both(bench)
    for figure, name in (("busiest_bytes", "bytes"), ("busiest_merges", "merges")):
        bench.target(
            what=f"reduction, all unique, F = 2^17: {name} of the busiest node from 8 to 64 nodes, "
            "as a multiple of growth with log2", limit=1.01,
            measured=statistics.summary([growth(bench.records(), figure)]), bound=1.0, medium="–",
            replication=1, fsync="–", flush="–", cache="–", bytes_a_rank="–")


def tables(records):
    no_twins = [[r["nodes"], r["how"],
                 "–" if r["how"] == "exact" else f"2^{round(math.log2(r['threshold']))}",
                 f"2^{round(math.log2(r['chunks']))}", text.spread(r["seconds"]),
                 f"{r['busiest_bytes'] / MIB:.1f}", r["busiest_messages"], r["busiest_merges"]]
                for r in records if r["kind"] == "worst"]
    both = [[r["ranks"], r["profile"], text.size(r["bytes_a_rank"]), r["how"],
             text.spread(r["seconds"]), f"{r['average_stored'] / MIB:.2f}",
             f"{r['largest_stored'] / MIB:.2f}"]
            for r in records if r["kind"] == "both"]
    best = [[r["ranks"], r["approach"], text.spread(r["seconds"]),
             f"{r['average_stored'] / MIB:.2f}", f"{r['largest_stored'] / MIB:.2f}"]
            for r in records if r["kind"] == "best"]
    each = text.size(next(r for r in records if r["kind"] == "best")["bytes_a_rank"])
    return [("Worst case: no chunk in common",
             ["nodes", "reduction", "F", "chunks a node", "seconds",
              "busiest node: MiB sent and received", "messages", "merges"], no_twins),
            ("A checkpoint with either, K = 2, one rank a node, tmpfs",
             ["ranks", "data", "bytes a rank", "reduction", "seconds", "stored a rank: average, MiB",
              "largest, MiB"], both),
            (f"Best case: the same {each} on every rank, each chunk different, K = 1, one rank a "
             "node, tmpfs",
             ["ranks", "approach", "seconds of a checkpoint", "stored a rank: average, MiB",
              "largest, MiB"], best)]


def figures(records):
    def draw_worst(figure):
        style.lines(figure.add_subplot(), {
            **{f"tree, F = 2^{power}": [(r["nodes"], r["seconds"]) for r in worst(records, power)]
               for power in THRESHOLDS if worst(records, power)},
            "exact": [(r["nodes"], r["seconds"]) for r in worst(records, 17, "exact")]},
            x_label="nodes", y_label="reduction (s)", log2=True)

    def draw_busiest(figure):
        style.lines(figure.add_subplot(), {
            how: [(r["nodes"], r["busiest_bytes"] / MIB) for r in worst(records, 17, how)]
            for how in ("tree", "exact")},
            x_label="nodes", y_label="sent and received by the busiest node (MiB)", log2=True)

    def best(approach, figure):
        return [(r["ranks"], r[figure] if figure == "seconds" else r[figure] / MIB)
                for r in records if r["kind"] == "best" and r["approach"] == approach]

    def draw_stored(figure):
        style.lines(figure.add_subplot(), {
            f"{approach}, {kind}": best(approach, f"{kind}_stored")
            for approach in APPROACHES for kind in ("average", "largest")},
            x_label="ranks", y_label="stored by a rank (MiB)", log2=True)

    def draw_times(figure):
        style.lines(figure.add_subplot(),
                    {approach: best(approach, "seconds") for approach in APPROACHES},
                    x_label="ranks", y_label="time of a checkpoint (s)", log2=True)

    return [("reduction-worst", draw_worst), ("reduction-busiest", draw_busiest),
            ("best-stored", draw_stored), ("best-time", draw_times)]
