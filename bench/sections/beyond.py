"""The pure parts for more nodes than there are: what grows, and how fast."""

import json
import math

from harness import statistics, style, text

TITLE = "Beyond one machine"
ORDER = 90

MIB = 1 << 20
THRESHOLD = 1 << 17
REPLICATION = 3
NARROW, WIDE = "beyond_reduce", "beyond_reduce_wide"  # node numbers of 16 and of 32 bits
# What the nodes have: chunks that all of them have, of F each.
DATA = {"all unique": 0, "half shared": THRESHOLD // 2}
# Of those with twins: how many of F all nodes have, and on how many nodes the others are.
COUNTED = {"all unique": (0, 1), "half shared": (THRESHOLD // 2, 1), "on 2 nodes": (0, 2),
           "on 4 nodes": (0, 4)}
LOADS = [(1, 2), (2, 5), (3, 8)]  # K, and on how many nodes chunks are
RANKS_A_NODE = 32  # 2^20 ranks on 2^15 nodes
PLACED = {"one in three with ten times as much": "paper", "lognormal": "lognormal"}


def simulate(bench, program, *words):
    return json.loads(bench.run([bench.program(program), *words]))


def reduce(bench, program, how, nodes, threshold, shared):
    return {"how": how, "wide": program == WIDE,
            **simulate(bench, program, how, nodes, threshold, REPLICATION, shared)}


def run_reduction(bench):
    threshold = 1 << 10 if bench.quick else THRESHOLD
    narrow = [2 ** n for n in ([3, 6, 15] if bench.quick else range(3, 16))]
    wide = [2 ** n for n in ([3, 20] if bench.quick else [3, *range(15, 21)])]
    for name, share in DATA.items():
        shared = share * threshold // THRESHOLD
        for program, counts in ((NARROW, narrow), (WIDE, wide)):
            for nodes in counts:
                bench.record(kind="reduce", data=name,
                             **reduce(bench, program, "drawn", nodes, threshold, shared))
        # Whether what is drawn is what merging gives.
        for nodes in [8] if bench.quick else [8, 16]:
            bench.record(kind="reduce", data=name,
                         **reduce(bench, NARROW, "merged", nodes, threshold, shared))


def run_counting(bench):
    chunks = 1 << 10 if bench.quick else THRESHOLD
    for nodes in [2 ** n for n in ([3, 7, 15] if bench.quick else range(3, 16))]:
        for name, (shared, others) in COUNTED.items():
            words = [nodes, chunks, REPLICATION, shared * chunks // THRESHOLD, others]
            lines = [simulate(bench, "beyond_count", "costs", *words)
                     for _ in range(1 if bench.quick else 3)]
            middle = sorted(lines, key=lambda line: line["seconds"])[len(lines) // 2]
            bench.record(kind="count", data=name, **middle)
    for nodes in [2 ** n for n in ([3, 6] if bench.quick else [3, 6, 9, 12, 15])]:
        for copies, others in LOADS:
            each = 1 << (8 if bench.quick or nodes > 1 << 9 else 10)
            bench.record(kind="loads", **simulate(bench, "beyond_count", "loads", nodes, each,
                                                  copies, 0, others))


def run_placement(bench):
    for nodes in [2 ** n for n in ([3, 15] if bench.quick else range(3, 16))]:
        for name, kind in PLACED.items():
            for partners in ("load", "ring"):
                for copies in (2, 3, 6):
                    line = simulate(bench, "beyond_place", partners, nodes, copies, kind, 1 << 12)
                    bench.record(kind="place", **{**line, "data": name})
    for nodes in [2 ** n for n in ([3, 8] if bench.quick else range(3, 12))]:
        bench.record(kind="choose", **simulate(bench, "beyond_place", "choose", nodes))


def reductions(records, data, how="drawn", wide=None):
    found = [r for r in records if r["kind"] == "reduce" and r["data"] == data and r["how"] == how]
    return sorted((r for r in found if wide is None or r["wide"] == wide),
                  key=lambda r: (r["wide"], r["nodes"]))


def growth(records, figure):
    """From 8 nodes to the most, as a multiple of growth with log2: node numbers of one width."""
    of = {r["nodes"]: r[figure] for r in reductions(records, "all unique", wide=True)}
    most = max(of)
    return of[most] / of[8] / (math.log2(most) / math.log2(8))


def run(bench):
    run_reduction(bench)
    run_counting(bench)
    run_placement(bench)
    if bench.quick:
        return  # with a small F, what grows with the nodes outweighs what grows with F
    for figure, name in (("bytes_received", "bytes"), ("merges", "merges")):
        bench.target(
            what=f"reduction, all unique, F = 2^17: {name} of the busiest node from 8 to 2^20 "
            "nodes, simulated, as a multiple of growth with log2", limit=1.01, bound=1.0,
            measured=statistics.summary([growth(bench.records(), figure)]), medium="–",
            replication=REPLICATION, fsync="–", flush="–", cache="–", bytes_a_rank="–")
    worst = [r for r in bench.records() if r["kind"] == "count" and r["nodes"] == 1 << 15]
    for what, limit, measured in (
            ("MiB received by the busiest node", 10, [r["bytes_received"] / MIB for r in worst]),
            ("ms of the busiest node's processor", 20, [1e3 * r["seconds"] for r in worst])):
        bench.target(
            what=f"counting 2^17 chunks on each of 2^15 nodes, simulated: {what}", limit=limit,
            measured=statistics.summary([max(measured)]), medium="–",
            replication=REPLICATION, fsync="–", flush="–", cache="–", bytes_a_rank="–",
            overview=f"counting exactly, 2^15 nodes, simulated: {what}")
    bench.target(
        what="counting, simulated: largest over average load of nodes", limit=1.1, bound=1.0,
        measured=statistics.summary([max(r["load_over_average"] for r in bench.records()
                                         if r["kind"] == "loads")]),
        medium="–", replication=REPLICATION, fsync="–", flush="–", cache="–", bytes_a_rank="–")


def power(count):
    return f"2^{round(math.log2(count))}"


def doublings(rows, figure):
    """The factor for each doubling of nodes, over the last of them."""
    if len(rows) < 2 or rows[-2][figure] == 0:
        return "–"
    steps = math.log2(rows[-1]["nodes"] / rows[-2]["nodes"])
    return f"{(rows[-1][figure] / rows[-2][figure]) ** (1 / steps):.2f}"


def reduction_table(records, data):
    rows = []
    for wide in (False, True):
        of = reductions(records, data, wide=wide)
        for at, r in enumerate(of):
            upto = of[:at + 1]
            rows.append([power(r["nodes"]), r["node_bits"], r["merges"],
                         f"{r['elements_merged'] / r['merges']:.0f}",
                         f"{1e3 * r['seconds_merging'] / r['merges']:.1f}",
                         f"{r['seconds_merging']:.2f}", f"{r['bytes_received'] / MIB:.2f}",
                         doublings(upto, "bytes_received"), f"{r['largest_message'] / MIB:.2f}",
                         f"{r['bytes_memory'] / MIB:.1f}", doublings(upto, "bytes_memory"),
                         f"{r['bytes_result'] / MIB:.2f}"])
    f = reductions(records, data)[0]["threshold"]
    return (f"The reduction's busiest node, {data}, F = {power(f)}, K = {REPLICATION}",
            ["nodes", "bits", "merges", "elements a merge", "ms a merge", "s in all",
             "MiB received", "× a doubling", "largest message", "memory MiB", "× a doubling",
             "result MiB"], rows)


def counting_table(records):
    rows = []
    for data in COUNTED:
        for r in (r for r in records if r["kind"] == "count" and r["data"] == data):
            tree = [t for t in reductions(records, data, wide=False) if t["nodes"] == r["nodes"]]
            rows.append([data, power(r["nodes"]), r["messages"],
                         f"{r['bytes_sent'] / MIB:.2f}", f"{r['bytes_received'] / MIB:.2f}",
                         f"{tree[0]['bytes_received'] / MIB:.2f}" if tree else "–",
                         f"{1e3 * r['seconds']:.1f}",
                         f"{1e3 * tree[0]['seconds_merging']:.0f}" if tree else "–",
                         f"{r['bytes_memory'] / MIB:.1f}"])
    chunks = next(r["chunks"] for r in records if r["kind"] == "count")
    return (f"Counting {power(chunks)} chunks on each node, K = {REPLICATION}: the busiest node",
            ["data", "nodes", "messages sent", "MiB sent", "MiB received", "the tree's root",
             "ms of the processor", "the tree's root", "memory MiB"], rows)


def loads_table(records):
    return ("Counting: largest over average load of nodes; a third of them have ten times as much of "
            "their own as the others",
            ["K", "chunks are on", "nodes", "chunks a node", "corrections of weights",
             "largest over average"],
            [[r["copies"], r["others"], power(r["nodes"]), r["chunks"], r["corrections"],
              f"{r['load_over_average']:.3f}"] for r in records if r["kind"] == "loads"])


def drawn_table(records):
    rows = []
    for r in (r for r in records if r["kind"] == "reduce" and r["how"] == "merged"):
        drawn = next(d for d in reductions(records, r["data"], wide=False)
                     if d["nodes"] == r["nodes"])
        rows.append([r["data"], r["nodes"], *(f"{x[name]}" for name in
                                              ("bytes_received", "elements_merged", "bytes_result")
                                              for x in (r, drawn))])
    return ("What arrives at the busiest node: merged from every node's set, and drawn",
            ["data", "nodes", "bytes merged", "drawn", "elements merged", "drawn",
             "result's bytes, merged", "drawn"], rows)


def placement_table(records, copies):
    rows = []
    found = [r for r in records if r["kind"] == "place" and r["copies"] == copies]
    for data in PLACED:
        of = [r for r in found if r["data"] == data]
        loads = [r for r in of if r["partners"] == "load"]
        for at, r in enumerate(loads):
            ring = next(x for x in of if x["partners"] == "ring" and x["nodes"] == r["nodes"])
            rows.append([data, power(r["nodes"]), power(RANKS_A_NODE * r["nodes"]),
                         f"{r['send_over_average']:.2f}", f"{r['receive_over_average']:.2f}",
                         f"{ring['receive_over_average']:.2f}", f"{1e3 * r['seconds']:.2f}",
                         f"{r['bytes_gathered'] / 1024:.1f}",
                         f"{r['bytes_memory'] / 1024:.1f}",
                         doublings(loads[:at + 1], "bytes_memory")])
    return (f"Placement, K = {copies}: largest over average of what nodes send and receive, and what "
            "it takes on every leader",
            ["data", "nodes", f"ranks ({RANKS_A_NODE} a node)", "send", "receive, load",
             "receive, ring", "ms", "KiB gathered", "memory KiB", "× a doubling"], rows)


def choose_table(records):
    of = [r for r in records if r["kind"] == "choose"]
    return ("An open's choice of the generation, on rank 0",
            ["nodes", "record KiB", "MiB gathered", "ms", "memory MiB", "× a doubling"],
            [[power(r["nodes"]), f"{r['bytes_record'] / 1024:.1f}",
              f"{r['bytes_gathered'] / MIB:.2f}", f"{1e3 * r['seconds']:.1f}",
              f"{r['bytes_memory'] / MIB:.2f}", doublings(of[:at + 1], "bytes_memory")]
             for at, r in enumerate(of)])


def tables(records):
    return [*(reduction_table(records, data) for data in DATA), counting_table(records),
            loads_table(records), drawn_table(records),
            placement_table(records, REPLICATION), choose_table(records)]


def figures(records):
    def exponents(axes):
        ticks = axes.get_xticks()
        axes.set_xticks(ticks, [power(x) for x in ticks], fontsize=6)

    def reduction(value, label):
        def draw(figure):
            axes = figure.add_subplot()
            style.lines(axes, {
                f"{data}, {bits} bit": [(r["nodes"], value(r))
                                        for r in reductions(records, data, wide=wide)]
                for data in DATA for wide, bits in ((False, 16), (True, 32))},
                x_label="nodes", y_label=label, log2=True)
            exponents(axes)
        return draw

    def draw_balance(figure):
        axes = figure.add_subplot()
        style.lines(axes, {
            f"{partners}, K = {copies}": [
                (r["nodes"], r["receive_over_average"]) for r in records
                if r["kind"] == "place" and r["partners"] == partners and r["copies"] == copies
                and r["data"] == "lognormal"]
            for copies in (3, 6) for partners in ("load", "ring")},
            x_label="nodes", y_label="largest receive over average", log2=True)
        exponents(axes)

    return [("beyond-bytes", reduction(lambda r: r["bytes_received"] / MIB,
                                       "received by the busiest node (MiB)")),
            ("beyond-time", reduction(lambda r: r["seconds_merging"],
                                      "merging on the busiest node (s)")),
            ("beyond-balance", draw_balance)]
