"""Against SCR's redundancy library, redset, with the same bytes and the same sets of nodes."""

import json
import os
import subprocess

from harness import checkpoint, statistics, text
from sections import rates

TITLE = "Against SCR's redset"
ORDER = 71
NEEDS = ["rates"]

MIB = 1 << 20
# (nodes, redset's scheme, ours, and what it is called)
SETS = [(8, "partner:1", {"replication": 2}, "K = 2"),
        (8, "xor", {"redundancy": "xor:7"}, "xor:7"),
        (10, "partner:2", {"replication": 3}, "K = 3"),
        (10, "rs:2", {"redundancy": "rs:8+2"}, "rs:8+2")]
WHERE = "DEDUP_BENCH_REDSET"


def program(bench):
    """The program that calls redset, made now; None where nobody says where that is."""
    prefix = os.environ.get(WHERE)
    if not prefix:
        return None
    name = "bench/programs/redset"
    bench.run(["make", "-C", bench.build, name, f"REDSET={prefix}"])
    return bench.program("redset")


def pair(bench, site, theirs, bytes_a_rank, repeats, nodes, scheme, hints, way):
    def redset():
        with bench.scratch_for_now(site.medium) as directory:
            return json.loads(bench.dedup_mpiexec(nodes, nodes, [theirs, scheme, directory, bytes_a_rank], {}, directory / "stores",
                                                  touches=3 * nodes * bytes_a_rank))["seconds"]

    def ours():
        return site.write(nodes, nodes, ["--profile", "unique", "--bytes", bytes_a_rank], hints)

    found = bench.alternate({"ours": ours, **({"redset": redset} if theirs else {})}, repeats)
    machine = bench.records("rates")
    bound = rates.bound_seconds(machine, found["ours"][0], rates.rate(machine, f"store_{site.medium}"), site.medium)
    found["ours"] = [line["write"]["total"] for line in found["ours"]]
    data = nodes * bytes_a_rank / MIB
    for who, seconds in found.items():
        bench.record(kind="set", who=who, way=way, scheme=scheme, nodes=nodes, medium=site.medium, bytes_a_rank=bytes_a_rank,
                     rate=statistics.summary([data / each for each in seconds]))
    if theirs:
        name = f"no duplicates, {way}, {nodes} nodes: write and close, of the time that redset's {scheme} takes"
        bench.target(what=name, limit=1, measured=statistics.ratio(found["ours"], found["redset"]),
                     bound=bound / statistics.median(found["redset"]), medium=site.medium,
                     replication=hints.get("replication", "–"), fsync="commit", flush="none", cache="–", bytes_a_rank=bytes_a_rank,
                     overview=f"{way}, no duplicates, to redset's {scheme}", peer=1)


def run(bench):
    theirs = program(bench)
    if not theirs:
        bench.say(f"without redset: {WHERE} does not say where it is installed")
    bytes_a_rank = (1 if bench.quick else 64) * MIB
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        site = checkpoint.Site(bench, medium)
        for one in SETS:
            pair(bench, site, theirs, bytes_a_rank, 1 if bench.quick else 5, *one)
        site.clear()


def tables(records):
    found = [r for r in records if r["kind"] == "set"]

    def rate(mine, who):
        return next((text.spread(r["rate"]) for r in found
                     if r["who"] == who and (r["way"], r["medium"]) == (mine["way"], mine["medium"])), "–")

    rows = [[r["medium"], r["nodes"], r["way"], rate(r, "ours"), r["scheme"], rate(r, "redset")]
            for r in found if r["who"] == "ours"]
    return [("No duplicates, a rank a node, all written, protected and flushed: MiB of data a second",
             ["medium", "nodes", "`dedup:`", "MiB/s", "redset", "MiB/s"], rows)]


def figures(records):
    return []
