"""Unique bytes by mode, for data like that of real applications (IPDPS 2015, figure 3a)."""

from harness import checkpoint, style, text

TITLE = "What deduplication finds"
ORDER = 20

MIB = 1 << 20
# Profile of bench/data, ranks (one a node), and what was measured of the application's memory:
# unique in each process and across all, %.
CASES = [("hpccg-8", 8, 45.0, 21.0), ("hpccg-16", 16, 44.6, 15.9), ("hpccg-32", 32, 52.5, 24.5),
         ("hpccg-408", 16, 33, 6), ("cm1-408", 16, 30, 5), ("cloverleaf-8", 8, 23.8, 13.5),
         ("lulesh-8", 8, 46.3, 31.4), ("cm1-8", 8, 52.1, 45.4), ("hpcg-8", 8, 70.2, 66.6),
         ("comd-8", 8, 96.3, 95.9), ("minife-8", 8, 99.4, 99.3)]
QUICK = ("hpccg-8", "lulesh-8")
REPLICATION = 3


def share(line, name):
    return 100 * checkpoint.total(line, name) / checkpoint.total(line, "bytes_written")


def measure(bench, site, options, ranks, **values):
    bench.say(values["data"])
    # With one copy of each chunk what is kept is what is unique; copies are another job's.
    once = site.write(ranks, ranks, options, {"replication": 1})
    copied = site.write(ranks, ranks, options, {"replication": REPLICATION})
    written = checkpoint.total(copied, "bytes_written")
    bench.record(kind="redundancy", ranks=ranks, nodes=ranks, replication=REPLICATION,
                 bytes_a_rank=once["bytes_a_rank"], medium=site.medium,
                 local=share(once, "bytes_unique_local"),
                 collective=share(once, "bytes_unique_collective"),
                 zero=share(once, "bytes_zero"),
                 sent=checkpoint.total(copied, "bytes_sent") / written,
                 stored=checkpoint.total(copied, "bytes_stored") / written, **values)


def run(bench):
    site = checkpoint.Site(bench, "tmpfs", timed=False)
    mib = 2 if bench.quick else 8
    for profile, ranks, local, collective in CASES:
        if bench.quick and profile not in QUICK:
            continue
        measure(bench, site, ["--profile", profile, "--bytes", mib * MIB], ranks, data=profile,
                expected_local=local, expected_collective=collective)
    if bench.data:
        measure(bench, site, ["--data", *bench.data], 8, data="files", expected_local=None,
                expected_collective=None)


def tables(records):
    rows = []
    for r in records:
        if r["kind"] != "redundancy":
            continue
        expected = ["–" if r[f"expected_{side}"] is None else text.number(float(r[f"expected_{side}"]))
                    for side in ("local", "collective")]
        rows.append([r["data"], r["ranks"], text.size(r["bytes_a_rank"]), f"{r['zero']:.1f}",
                     f"{r['local']:.1f}", expected[0], f"{r['collective']:.1f}", expected[1],
                     f"{r['sent']:.2f}", f"{r['stored']:.2f}"])
    return [("Shares of all bytes that the driver found, %, beside those of the applications' "
             f"memory; sent and stored at K = {REPLICATION}, as multiples of all bytes",
             ["data", "ranks", "a rank", "zeros", "local", "(memory)", "collective", "(memory)",
              "sent", "stored"], rows)]


def figures(records):
    found = [r for r in records if r["kind"] == "redundancy"]

    def draw(figure):
        axes = figure.add_subplot()
        total = [r["bytes_a_rank"] * r["ranks"] / MIB for r in found]
        style.bars(axes, [r["data"].replace("-", "\n", 1) for r in found], {
            "none": total,
            "local": [t * r["local"] / 100 for t, r in zip(total, found)],
            "collective": [t * r["collective"] / 100 for t, r in zip(total, found)]},
            y_label="unique content (MiB)")
        axes.tick_params(axis="x", labelsize=6)

    return [("unique-bytes", draw)]
