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
WAYS = {"no write-back": {"flush": "none"}, "background": {"flush": "background"}, "close": {"flush": "close"}}


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (4 if bench.quick else 64) * MIB
    repeats = 1 if bench.quick else 5

    def job(steps, work, hints):
        site.clear()
        out = bench.dedup_mpiexec(
            NODES, NODES, [bench.program("background"), site.name(), "--bytes", bytes_a_rank, "--steps", steps,
                           "--work", work],
            {"replication": 2, **hints}, site.stores, touches=4 * NODES * bytes_a_rank * steps)
        line = json.loads(out)
        if hints["flush"] != "none":
            plain = [site.directory / f"file{step}" for step in range(steps)]
            if any(path.stat().st_size != NODES * bytes_a_rank for path in plain):
                raise AssertionError("a file is not written back")
        site.clear()
        return line

    # How fast the stores take it, and how long the program computes, here and now.
    first = job(3, 100, WAYS["no write-back"])
    write = python_statistics.median(first["seconds"]["write"])
    million = python_statistics.median(first["seconds"]["compute"]) / 100
    rate = int(bytes_a_rank / write / SLOWER)
    write_back = bytes_a_rank / rate
    work = max(1, int(COMPUTES * write_back / million))
    # Only what goes on in the background can be slowed down by a hint: closing is measured as it is.
    lines = bench.alternate(
        {name: lambda hints=hints: job(STEPS, work, {**hints, "flush_rate": rate}) for name, hints in WAYS.items()},
        repeats)
    for name, found in lines.items():
        bench.record(kind="background", way=name, nodes=NODES, bytes_a_rank=bytes_a_rank, steps=STEPS, rate=rate,
                     write_back=write_back, medium=site.medium,
                     write=statistics.summary([seconds for line in found for seconds in line["seconds"]["write"]]),
                     compute=statistics.summary([seconds for line in found for seconds in line["seconds"]["compute"]]),
                     total=statistics.summary([line["seconds"]["total"] for line in found]))
    about = {"medium": site.medium, "replication": 2, "fsync": "commit", "flush": "background", "cache": "warm",
             "bytes_a_rank": bytes_a_rank}
    ratios = {part: [value(mine) / value(none) for mine, none in zip(lines["background"], lines["no write-back"])]
              for part, value in (("write", lambda line: python_statistics.median(line["seconds"]["write"])),
                                  ("total", lambda line: line["seconds"]["total"]))}
    bench.target(what="write and close with dedup_flush=background, against no write-back; target at a tenth of the stores' rate",
                 measured=statistics.summary(ratios["write"]), limit=1.1, **about,
                 overview="write and close, written back in the background, to no write-back")
    bench.target(what=f"{STEPS} checkpoints of a program that computes {COMPUTES} times as long as a write-back takes: total, "
                 "against no write-back", measured=statistics.summary(ratios["total"]), limit=1.05, **about,
                 overview=f"{STEPS} checkpoints and their write-back while the program computes, to no write-back")
    site.clear()


def tables(records):
    found = [r for r in records if r["kind"] == "background"]
    rows = [[r["way"], *(text.spread(r[part]) for part in ("write", "compute", "total"))] for r in found]
    first = found[0]
    return [(f"{first['nodes']} nodes with a rank each, {text.size(first['bytes_a_rank'])} a rank and file, {first['steps']} files; "
             f"in the background {text.size(first['rate'])} a second and node, {first['write_back']:.1f} s a file: seconds",
             ["dedup_flush", "open, write, close", "compute", "all"], rows)]


def figures(records):
    return []
