"""A checkpoint over the replication factor, what is sent, and what the busiest node receives
(IPDPS 2015, figures 4 and 5)."""

from harness import checkpoint, statistics, style, text

TITLE = "Over the replication factor"
ORDER = 40

MIB = 1 << 20
MODES = ["none", "local", "collective"]
APPLICATIONS = {"hpccg-408": "HPCCG", "cm1-408": "CM1"}
SKEW = 0.9  # bench/data: how unequal the ranks' own shares are


def measure(site, profile, ranks, bytes_a_rank, hints):
    return site.write(ranks, ranks, ["--profile", profile, "--bytes", bytes_a_rank, "--skew", SKEW],
                      hints)


def record(bench, profile, ranks, mode, replication, partners, lines, medium):
    def each(figure, name):
        return max(commit[figure][name] for commit in lines[0]["commits"])

    bench.record(kind="checkpoint", profile=profile, skew=SKEW, ranks=ranks, nodes=ranks, mode=mode,
                 replication=replication, partners=partners, medium=medium,
                 bytes_a_rank=lines[0]["bytes_a_rank"],
                 seconds=statistics.summary([line["write"]["total"] for line in lines]),
                 average_send=each("bytes_sent", "avg"), largest_send=each("bytes_sent", "max"),
                 largest_receive=each("bytes_received", "max"))


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (1 if bench.quick else 16) * MIB
    ranks = 8 if bench.quick else 16
    for profile in list(APPLICATIONS)[:1] if bench.quick else APPLICATIONS:
        for replication in [3] if bench.quick else range(1, 7):
            bench.say(f"{profile}, K = {replication}")
            found = bench.alternate(
                {mode: lambda mode=mode: measure(site, profile, ranks, bytes_a_rank,
                                                 {"mode": mode, "replication": replication, "group": 1})
                 for mode in MODES}, 1)
            for mode, lines in found.items():
                # Only the reduction knows what to balance: the others' partners are a ring.
                partners = "load" if mode == "collective" else "ring"
                record(bench, profile, ranks, mode, replication, partners, lines, site.medium)
            line = measure(site, profile, ranks, bytes_a_rank,
                           {"replication": replication, "partners": "ring"})
            record(bench, profile, ranks, "collective", replication, "ring", [line], site.medium)


def tables(records):
    out = []
    for profile, name in checkpoint.measured(records, APPLICATIONS).items():
        rows = []
        for replication in sorted({r["replication"] for r in records if r["kind"] == "checkpoint"}):
            modes = [checkpoint.of(records, profile=profile, mode=mode, replication=replication,
                        partners="load" if mode == "collective" else "ring")[0] for mode in MODES]
            ring = checkpoint.of(records, profile=profile, mode="collective", replication=replication,
                      partners="ring")[0]
            rows.append([replication, *(text.spread(r["seconds"]) for r in modes),
                         *(f"{r['average_send'] / MIB:.1f} / {r['largest_send'] / MIB:.1f}"
                           for r in modes),
                         f"{modes[2]['largest_receive'] / MIB:.1f}",
                         f"{ring['largest_receive'] / MIB:.1f}"])
        some = checkpoint.of(records, profile=profile)[0]
        out.append((f"{name}, {some['ranks']} ranks on as many nodes, {text.size(some['bytes_a_rank'])} a rank, "
                    "tmpfs: seconds of a checkpoint; average and largest send of a rank, MiB; "
                    "largest receive in the mode collective with partners by load and in a ring, "
                    "MiB",
                    ["K", *(f"{mode}, s" for mode in MODES), *(f"send {mode}" for mode in MODES),
                     "receive load", "ring"], rows))
    return out


def figures(records):
    def times(profile, name):
        return lambda figure: style.lines(
            figure.add_subplot(),
            {mode: [(r["replication"], r["seconds"]) for r in checkpoint.of(
                records, profile=profile, mode=mode,
                partners="load" if mode == "collective" else "ring")] for mode in MODES},
            x_label="replication factor K", y_label="time of a checkpoint (s)", title=name)

    def sends(profile, name):
        series = {}
        for mode in MODES:
            found = checkpoint.of(records, profile=profile, mode=mode,
                       partners="load" if mode == "collective" else "ring")
            for kind in ("average", "largest"):
                series[f"{mode}, {kind}"] = [(r["replication"], r[f"{kind}_send"] / MIB)
                                             for r in found]
        return lambda figure: style.lines(figure.add_subplot(), series, title=name,
                                          x_label="replication factor K",
                                          y_label="sent by a rank (MiB)")

    def receives(profile, name):
        series = {f"partners: {partners}": [
            (r["replication"], r["largest_receive"] / MIB)
            for r in checkpoint.of(records, profile=profile, mode="collective", partners=partners)]
            for partners in ("ring", "load")}
        return lambda figure: style.lines(figure.add_subplot(), series, title=name,
                                          x_label="replication factor K",
                                          y_label="largest receive of a rank (MiB)")

    return [(f"replication-{kind}-{name.lower()}", make(profile, name))
            for profile, name in checkpoint.measured(records, APPLICATIONS).items()
            for kind, make in (("time", times), ("send", sends), ("receive", receives))]
