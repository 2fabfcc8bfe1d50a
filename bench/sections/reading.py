"""Reading a checkpoint back: whole, after losing nodes, and with fewer ranks."""

from harness import checkpoint, statistics, text

TITLE = "Reading back"
ORDER = 60

MIB = 1 << 20
NODES = 4
PROFILES = ["unique", "hpccg-8"]


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    ranks = 8  # half of them are still one a node
    bytes_a_rank = (1 if bench.quick else 64) * MIB
    repeats = 1 if bench.quick else 3
    for profile in PROFILES[:1] if bench.quick else PROFILES:
        for replication in [2] if bench.quick else [2, 3]:
            bench.say(f"{profile}, K = {replication}")
            data = ["--profile", profile, "--bytes", bytes_a_rank, "--writers", ranks]
            site.clear()
            site.job(NODES, ranks, [*data, "--no-read"], {"replication": replication})
            lost = replication - 1

            def read(nodes, readers):
                names = ",".join(f"n{n}" for n in range(NODES - nodes, NODES))
                return site.job(names, readers, [*data, "--no-write"],
                                {"replication": replication})["read"]["total"]

            whole = bench.alternate({"as many ranks": lambda: read(NODES, ranks),
                                     "half the ranks": lambda: read(NODES, ranks // 2)}, repeats)
            site.lose(lost)
            after = bench.alternate({"as many ranks": lambda: read(NODES - lost, ranks),
                                     "half the ranks": lambda: read(NODES - lost, ranks // 2)},
                                    repeats)
            for found, missing in ((whole, 0), (after, lost)):
                for name, samples in found.items():
                    bench.record(kind="read", profile=profile, replication=replication,
                                 nodes=NODES, lost_nodes=missing, writers=ranks, readers=name,
                                 bytes=ranks * bytes_a_rank, medium=site.medium, cache="warm",
                                 seconds=statistics.summary(samples))
            site.clear()


def tables(records):
    rows = []
    for r in records:
        if r["kind"] == "read":
            rows.append([r["profile"], r["replication"], r["lost_nodes"], r["readers"],
                         text.spread(r["seconds"]), text.rate(r["bytes"] / r["seconds"]["median"])])
    some = next(r for r in records if r["kind"] == "read")
    return [(f"Reading {text.size(some['bytes'])} that {some['writers']} ranks on {NODES} nodes wrote, tmpfs, "
             "open to close",
             ["data", "K", "lost nodes", "readers", "seconds", "rate"], rows)]


def figures(records):
    return []
