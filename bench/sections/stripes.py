"""Stripes against copies: what they store, send, and take, and reading with nodes lost."""

from harness import checkpoint, statistics, text
from sections import paced

TITLE = "Stripes instead of copies"
ORDER = 45

MIB = 1 << 20
NODES = 10
COPIES = {"replication": 3}
STRIPES = {"redundancy": "rs:8+2"}
WAYS = {"K = 3": COPIES, "rs:8+2": STRIPES, "K = 2": {"replication": 2}, "xor:7": {"redundancy": "xor:7"}}
# More than there are nodes: what is on several of them goes into stripes, too.
ALL_IN_STRIPES = {**STRIPES, "replication": 16}
LOST = 2
# With 8 + 2: on how many nodes a duplicate stays; bytes that a striped one takes.
LEFT_ALONE, OF_STRIPES = 3, 1 + 2 / 8
LIKE = {"comd-8": "CoMD", "lulesh-8": "LULESH", "hpccg-408": "HPCCG"}


def about(medium, bytes_a_rank):
    return {"medium": medium, "replication": 3, "fsync": "commit", "flush": "none", "cache": "–",
            "bytes_a_rank": bytes_a_rank}


def share(line, figure):
    return checkpoint.total(line, figure) / checkpoint.total(line, "bytes_written")


def measure(bench, site, profile, ways, bytes_a_rank, repeats):
    """A rank a node writes and reads back, in each way."""
    options = ["--profile", profile, "--bytes", bytes_a_rank]
    found = bench.alternate({name: lambda hints=hints: site.write(NODES, NODES, options, hints)
                             for name, hints in ways.items()}, repeats)
    for name, lines in found.items():
        bench.record(kind="stripes", profile=profile, way=name, nodes=NODES, medium=site.medium, fsync=True,
                     bytes_a_rank=bytes_a_rank, seconds=statistics.summary([line["write"]["total"] for line in lines]),
                     sent=share(lines[0], "bytes_sent"), stored=share(lines[0], "bytes_stored"))
    return found


def all_unique(bench, site, bytes_a_rank, repeats):
    found = measure(bench, site, "unique", WAYS, bytes_a_rank, repeats)
    for what, figure, limit in (("stored, of the data", "bytes_stored", 1.3), ("sent, of the data", "bytes_sent", 1.17)):
        bench.target(what=f"data without duplicates, `rs:8+2`, {NODES} nodes: {what}", limit=limit,
                     measured=statistics.summary([share(found["rs:8+2"][0], figure)]), **about(site.medium, bytes_a_rank),
                     overview=f"rs:8+2, no duplicates: {what}")
    seconds = {name: [line["write"]["total"] for line in lines] for name, lines in found.items()}
    bench.target(what=f"data without duplicates, `rs:8+2`, {NODES} nodes: write and close, of those with K = 3", limit=1,
                 measured=statistics.ratio(seconds["rs:8+2"], seconds["K = 3"]), **about(site.medium, bytes_a_rank),
                 overview="rs:8+2, no duplicates: time, to K = 3")


def least_stored(copies, striped):
    """What must be stored of what K = 3 stores: the rest, that K = 3 has three times and stripes once, takes
    1 + m / k of its size; what three nodes have stays on m + 1 = 3 of them in either way."""
    distinct = checkpoint.total(copies, "bytes_stored") / COPIES["replication"]
    # Besides parities: three times what three nodes have, and the rest.
    duplicates = (checkpoint.total(striped, "bytes_unique_collective") - distinct) / (COPIES["replication"] - 1)
    rest = distinct - duplicates
    return (LEFT_ALONE * duplicates + OF_STRIPES * rest) / (COPIES["replication"] * distinct)


def like_applications(bench, site, bytes_a_rank):
    for profile, name in LIKE.items():
        ways = {"K = 3": COPIES, "rs:8+2": STRIPES, "rs:8+2, all": ALL_IN_STRIPES}
        found = measure(bench, site, profile, ways, bytes_a_rank, 1)
        stored = {way: share(lines[0], "bytes_stored") for way, lines in found.items()}
        for way, said in (("rs:8+2", "`rs:8+2`"), ("rs:8+2, all", "`rs:8+2`, duplicates in stripes, too")):
            bench.target(what=f"data like {name}'s, {said}, {NODES} nodes: stored, of what K = 3 stores", limit=0.45,
                         measured=statistics.summary([stored[way] / stored["K = 3"]]),
                         bound=least_stored(found["K = 3"][0], found[way][0]), **about(site.medium, bytes_a_rank),
                         overview=f"{said}, data like {name}'s: stored, to K = 3")


def at_the_papers_rates(bench, site, bytes_a_rank, of_node):
    """As in section paced, with each form of the exchange."""
    options = ["--profile", "unique", "--bytes", bytes_a_rank]
    for exchange in ("send", "put"):
        found = bench.alternate({name: lambda hints=hints: paced.write(
            site, NODES, options, {**hints, "exchange": exchange}, of_node)
            for name, hints in (("K = 3", COPIES), ("rs:8+2", STRIPES))}, 1)
        # Stripes are stored while they are sent with either.
        at_rates = {name: paced.at_rates(lines[0], NODES, of_node, exchange if name == "K = 3" else "send")
                    for name, lines in found.items()}
        for name, lines in found.items():
            bench.record(kind="stripes paced", way=name, exchange=exchange, rates=of_node, bytes_a_rank=bytes_a_rank,
                         seconds=statistics.summary([line["write"]["total"] for line in lines]),
                         at_rates=at_rates[name])
        seconds = {name: [line["write"]["total"] for line in lines] for name, lines in found.items()}
        bench.target(what=f"data without duplicates, `rs:8+2`, {NODES} nodes, at the paper's rates, `dedup_exchange={exchange}`: "
                     "write and close, of those with K = 3", limit=0.6,
                     measured=statistics.ratio(seconds["rs:8+2"], seconds["K = 3"]),
                     bound=at_rates["rs:8+2"] / at_rates["K = 3"], **about(site.medium, bytes_a_rank),
                     overview=f"rs:8+2, no duplicates, at the paper's rates, `{exchange}`: time, to K = 3")


def degraded(bench, site, bytes_a_rank, repeats):
    """All of it, before and after nodes are lost, by the nodes that are left."""
    options = ["--profile", "unique", "--bytes", bytes_a_rank, "--writers", NODES]
    site.clear()
    site.job(NODES, NODES, [*options, "--no-read"], STRIPES)

    def read(lost):
        names = ",".join(f"n{n}" for n in range(lost, NODES))
        return site.job(names, NODES - lost, [*options, "--no-write"], STRIPES)["read"]["total"]

    whole = [read(0) for _ in range(repeats)]
    site.lose(LOST)
    after = [read(LOST) for _ in range(repeats)]
    site.clear()
    for what, seconds in (("all", whole), (f"{LOST} are lost", after)):
        bench.record(kind="degraded", what=what, nodes=NODES, medium=site.medium, bytes_a_rank=bytes_a_rank,
                     seconds=statistics.summary(seconds))
    bench.target(what=f"`rs:8+2`, {NODES} nodes, {LOST} lost: reading everything, of reading it with all nodes", limit=3,
                 measured=statistics.ratio(after, whole), **about(site.medium, bytes_a_rank),
                 overview=f"reading everything with {LOST} of {NODES} nodes lost, to all there")


def run(bench):
    bytes_a_rank = (2 if bench.quick else 64) * MIB
    repeats = 1 if bench.quick else 5
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        bench.say(medium)
        site = checkpoint.Site(bench, medium)
        all_unique(bench, site, bytes_a_rank, repeats)
        if medium == "tmpfs":
            like_applications(bench, site, bytes_a_rank // 4)
            at_the_papers_rates(bench, site, *((MIB, paced.rates(4 * MIB)) if bench.quick else (8 * MIB, paced.rates(1.5 * MIB))))
            degraded(bench, site, bytes_a_rank, repeats)
        site.clear()


def tables(records):
    rows = [[LIKE.get(r["profile"], "no duplicates"), r["medium"], r["way"], text.size(r["bytes_a_rank"]),
             text.spread(r["seconds"]), text.number(r["sent"]), text.number(r["stored"])]
            for r in records if r["kind"] == "stripes"]
    reads = [[r["what"], text.size(r["bytes_a_rank"]), text.spread(r["seconds"])]
             for r in records if r["kind"] == "degraded"]
    return [(f"{NODES} nodes of a rank each: seconds of a write and close; bytes sent and stored, of the data",
             ["data", "medium", "kept as", "a rank", "seconds", "sent", "stored"], rows),
            ("The same at the paper's rates, tmpfs, no duplicates: seconds, and what the bytes alone take at these rates",
             ["exchange", "kept as", "a rank", "seconds", "at the rates"],
             [[r["exchange"], r["way"], text.size(r["bytes_a_rank"]), text.spread(r["seconds"]), text.number(r["at_rates"])]
              for r in records if r["kind"] == "stripes paced"]),
            (f"Reading everything that is in stripes of 8 + 2 on {NODES} nodes, a rank on each that is there, tmpfs: seconds, "
             "open to close",
             ["stores", "a rank", "seconds"], reads)]


def figures(records):
    return []
