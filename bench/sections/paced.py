"""The three modes at the proportions of the 2015 paper's test bed: hashing, stores and links."""

from harness import checkpoint, statistics, style, text

TITLE = "Collective against local and none, at the paper's rates"
ORDER = 66

MIB = 1 << 20
NODES = 16
REPLICATION = 3
MODES = ["none", "local", "collective"]
PROFILES = {"hpccg-408": "HPCCG at 408 ranks", "hpccg-16": "HPCCG at 16 ranks"}
# IPDPS 2015, V-A: SHA-1 on six cores, a disk of its time, and Gigabit Ethernet.
PROPORTIONS = {"hash": 21, "store": 1, "link": 1.2}


def rates(store):
    """Bytes a second of each node's devices."""
    return {device: round(store * times) for device, times in PROPORTIONS.items()}


def pace(of_node):
    """The same as DEDUP_TEST_PACE has it (doc/testing.md)."""
    return ",".join(f"{device}={rate}" for device, rate in of_node.items())


def at_rates(line, nodes, of_node, exchange):
    """Seconds that a node's devices need for the job's bytes if the load is even: one device after
    the other, or, with `send`, storing and sending at the same time."""
    store = checkpoint.total(line, "bytes_stored") / nodes / of_node["store"]
    link = checkpoint.total(line, "bytes_sent") / nodes / of_node["link"]
    hashing = checkpoint.total(line, "bytes_fingerprinted") / nodes / of_node["hash"]
    return hashing + (max(store, link) if exchange == "send" else store + link)


def write(site, nodes, options, hints, of_node):
    """Writes at these rates; reads back and compares as fast as the machine can."""
    site.clear()
    # As the papers name chunks.
    paced = {"fingerprint": "sha256", "test_pace": pace(of_node)}
    line = site.job(nodes, nodes, [*options, "--no-read"], {**hints, **paced})
    read = site.job(nodes, nodes, [*options, "--no-write"], {})
    if read["checked_bytes"] != line["bytes"]:
        raise AssertionError(f"{read['checked_bytes']} of {line['bytes']} bytes were compared")
    site.clear()
    return line


def measure(bench, site, profile, exchange, nodes, bytes_a_rank, of_node):
    found = bench.alternate(
        {mode: lambda mode=mode: write(
            site, nodes, ["--profile", profile, "--bytes", bytes_a_rank],
            {"mode": mode, "replication": REPLICATION, "exchange": exchange}, of_node)
         for mode in MODES}, 1)
    for mode, lines in found.items():
        bench.record(kind="paced", profile=profile, exchange=exchange, mode=mode, nodes=nodes,
                     ranks=nodes,
                     replication=REPLICATION, bytes_a_rank=bytes_a_rank, rates=of_node,
                     medium=site.medium,
                     seconds=statistics.summary([line["write"]["total"] for line in lines]),
                     at_rates=at_rates(lines[0], nodes, of_node, exchange),
                     stored=checkpoint.total(lines[0], "bytes_stored"),
                     sent=checkpoint.total(lines[0], "bytes_sent"),
                     reducing=checkpoint.total(lines[0], "bytes_reducing"),
                     phases=checkpoint.phases(lines))


def target(bench, profile, exchange, other, limit, per_byte):
    """Time with mode `other` over that of collective; per_byte: as a share of the bytes' ratio."""
    found = {r["mode"]: r for r in bench.records()
             if r["kind"] == "paced" and r["profile"] == profile and r["exchange"] == exchange}
    mine, theirs = found["collective"], found[other]
    ratio = theirs["stored"] / mine["stored"] if per_byte else 1
    measured = statistics.ratio(theirs["seconds"]["samples"], mine["seconds"]["samples"])
    what = (f"{other} against collective, paced, data like {PROFILES[profile]}, "
            f"{mine['nodes']} nodes of one rank, `dedup_exchange={exchange}`: ")
    what += (f"ratio of times, as a share of that of bytes stored ({ratio:.2f})" if per_byte
             else "times less time")
    bench.target(what=what, limit=limit, at_least=True,
                 measured=statistics.summary([m / ratio for m in measured["samples"]]),
                 bound=theirs["at_rates"] / mine["at_rates"] / ratio, medium=mine["medium"],
                 replication=REPLICATION, fsync="commit", flush="none", cache="–",
                 bytes_a_rank=mine["bytes_a_rank"], papers=None if per_byte else limit,
                 overview=None if per_byte else f"{other} to collective, paced, data like {PROFILES[profile]}, `{exchange}`")


def run(bench):
    site = checkpoint.Site(bench, "tmpfs", timed=False)
    nodes, bytes_a_rank, of_node = NODES, 8 * MIB, rates(1.5 * MIB)
    if bench.quick:
        nodes, bytes_a_rank, of_node = 4, MIB, rates(4 * MIB)
    for exchange in ("put", "send"):
        measure(bench, site, "hpccg-408", exchange, nodes, bytes_a_rank, of_node)
        target(bench, "hpccg-408", exchange, "none", 9.5, per_byte=False)
        target(bench, "hpccg-408", exchange, "local", 2.8, per_byte=False)
    if not bench.quick:
        measure(bench, site, "hpccg-16", "put", nodes, bytes_a_rank, of_node)
        target(bench, "hpccg-16", "put", "none", 0.8, per_byte=True)


def tables(records):
    found = [r for r in records if r["kind"] == "paced"]
    rows = []
    for r in found:
        mine = next(c for c in found
                    if c["mode"] == "collective" and c["profile"] == r["profile"]
                    and c["exchange"] == r["exchange"])
        rows.append([r["profile"], r["exchange"], r["mode"], text.spread(r["seconds"]),
                     text.number(r["at_rates"]),
                     f"{r['seconds']['median'] / mine['seconds']['median']:.2f}",
                     f"{r['at_rates'] / mine['at_rates']:.2f}",
                     f"{r['stored'] / mine['stored']:.2f}",
                     *(f"{r[name] / MIB:.1f}" for name in ("stored", "sent", "reducing"))])
    one = found[0]
    caption = (f"{one['nodes']} nodes of one rank, {text.size(one['bytes_a_rank'])} a rank, "
               f"K = {REPLICATION}, a node's rates: "
               + ", ".join(f"{name} {text.size(rate)}/s" for name, rate in one["rates"].items())
               + ". Seconds of a checkpoint, what the bytes alone take at these rates, both as "
               "multiples of the mode collective's, and MiB of all nodes")
    return [(caption, ["data", "exchange", "mode", "seconds", "at the rates", "times coll.", "at the rates",
                       "bytes stored", "stored", "sent", "reduction"], rows),
            checkpoint.phase_table([(f"{r['profile']}, {r['exchange']}, {r['mode']}", r["phases"])
                                    for r in found])]


def figures(records):
    found = [r for r in records if r["kind"] == "paced" and r["exchange"] == "put"]
    profiles = list(dict.fromkeys(r["profile"] for r in found))

    def draw(figure):
        style.bars(figure.add_subplot(), profiles, {
            mode: [r["seconds"]["median"] for profile in profiles for r in found
                   if r["profile"] == profile and r["mode"] == mode] for mode in MODES},
            y_label="time of a checkpoint (s)")

    return [("paced", draw)]
