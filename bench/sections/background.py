"""Writing back in the background: what a program that computes and writes checkpoints notices of it."""

import json
import statistics as python_statistics

from harness import checkpoint, statistics, text

TITLE = "Writing back in the background"
ORDER = 67

MIB = 1 << 20
NODES = 2
STEPS = 5
COMPUTES = 1.2  # of the time that a write-back takes
SLOWER = 10  # the target, than the stores
PAPERS_INGRESS = 2.78  # the burst buffer paper, V-B
ABOUT = {"replication": 2, "fsync": "commit", "flush": "background", "cache": "warm"}
WAYS = {"no write-back": {"flush": "none"}, "background": {"flush": "background"}, "close": {"flush": "close"}}


def job(bench, site, nodes, bytes_a_rank, steps, work, hints):
    """A rank a node. Its line; what it wrote back has been seen to be there."""
    site.clear()
    out = bench.dedup_mpiexec(
        nodes, nodes, [bench.program("background"), site.name(), "--bytes", bytes_a_rank, "--steps", steps, "--work", work],
        {"replication": 2, **hints}, site.stores, touches=4 * nodes * bytes_a_rank * steps)
    line = json.loads(out)
    if hints["flush"] != "none":
        plain = [site.directory / f"file{step}" for step in range(steps)]
        if any(path.stat().st_size != nodes * bytes_a_rank for path in plain):
            raise AssertionError("a file is not written back")
    site.clear()
    return line


def a_tenth(line, bytes_a_rank):
    """Of the rate at which a node's stores take a checkpoint, bytes a second."""
    return int(bytes_a_rank / python_statistics.median(line["seconds"]["write"]) / SLOWER)


def beside_computing(bench, site, bytes_a_rank, repeats):
    # How fast the stores take it, and how long the program computes, here and now.
    first = job(bench, site, NODES, bytes_a_rank, 3, 100, WAYS["no write-back"])
    million = python_statistics.median(first["seconds"]["compute"]) / 100
    rate = a_tenth(first, bytes_a_rank)
    write_back = bytes_a_rank / rate
    work = max(1, int(COMPUTES * write_back / million))
    # Only what goes on in the background can be slowed down by a hint: closing is measured as it is.
    lines = bench.alternate(
        {name: lambda hints=hints: job(bench, site, NODES, bytes_a_rank, STEPS, work, {**hints, "flush_rate": rate})
         for name, hints in WAYS.items()}, repeats)
    for name, found in lines.items():
        bench.record(kind="background", way=name, nodes=NODES, bytes_a_rank=bytes_a_rank, steps=STEPS, rate=rate,
                     write_back=write_back, medium=site.medium,
                     write=statistics.summary([seconds for line in found for seconds in line["seconds"]["write"]]),
                     compute=statistics.summary([seconds for line in found for seconds in line["seconds"]["compute"]]),
                     total=statistics.summary([line["seconds"]["total"] for line in found]))
    ratios = {part: [value(mine) / value(none) for mine, none in zip(lines["background"], lines["no write-back"])]
              for part, value in (("write", lambda line: python_statistics.median(line["seconds"]["write"])),
                                  ("total", lambda line: line["seconds"]["total"]))}
    about = ABOUT | {"medium": site.medium, "bytes_a_rank": bytes_a_rank}
    bench.target(what="write and close with dedup_flush=background, against no write-back; target at a tenth of the stores' rate",
                 measured=statistics.summary(ratios["write"]), limit=1.1, **about,
                 overview="write and close, written back in the background, to no write-back")
    bench.target(what=f"{STEPS} checkpoints of a program that computes {COMPUTES} times as long as a write-back takes: total, "
                 "against no write-back", measured=statistics.summary(ratios["total"]), limit=1.05, **about,
                 overview=f"{STEPS} checkpoints and their write-back while the program computes, to no write-back")


def ingress(bench, site, nodes, bytes_a_rank, repeats):
    """As the burst buffer of 2015 was measured (V-B): how much faster the program gets rid of its data."""
    rate = a_tenth(job(bench, site, nodes, bytes_a_rank, 3, 1, WAYS["no write-back"]), bytes_a_rank)
    lines = [job(bench, site, nodes, bytes_a_rank, 2, 1, {**WAYS["background"], "flush_rate": rate}) for _ in range(repeats)]
    # The other side at its best: nothing but the file system's rate.
    direct = bytes_a_rank / rate
    samples = [direct / seconds for line in lines for seconds in line["seconds"]["write"]]
    bench.record(kind="ingress", nodes=nodes, bytes_a_rank=bytes_a_rank, medium=site.medium, direct=direct,
                 times=statistics.summary(samples))
    bench.target(what=f"write and close with dedup_flush=background, {nodes} nodes, against writing at the target's rate, a tenth of the "
                 "stores': times less time", measured=statistics.summary(samples), limit=PAPERS_INGRESS, at_least=True,
                 papers=PAPERS_INGRESS, **ABOUT | {"medium": site.medium, "bytes_a_rank": bytes_a_rank},
                 overview=f"writing directly to a file system ten times slower, {nodes} nodes, to write and close with write-back")


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    repeats = 1 if bench.quick else 5
    beside_computing(bench, site, (4 if bench.quick else 64) * MIB, repeats)
    ingress(bench, site, 4 if bench.quick else 16, (4 if bench.quick else 16) * MIB, repeats)
    site.clear()


def tables(records):
    found = [r for r in records if r["kind"] == "background"]
    rows = [[r["way"], *(text.spread(r[part]) for part in ("write", "compute", "total"))] for r in found]
    first = found[0]
    return [(f"{first['nodes']} nodes with a rank each, {text.size(first['bytes_a_rank'])} a rank and file, {first['steps']} files; "
             f"in the background {text.size(first['rate'])} a second and node, {first['write_back']:.1f} s a file: seconds",
             ["dedup_flush", "open, write, close", "compute", "all"], rows),
            ("Open, write and close while the last file is being written back, against writing at the target's rate",
             ["nodes", "a rank", "at the target's rate (s)", "times less time"],
             [[r["nodes"], text.size(r["bytes_a_rank"]), text.number(r["direct"]), text.spread(r["times"])]
              for r in records if r["kind"] == "ingress"])]


def figures(records):
    return []
