"""A checkpoint over the number of ranks, in the three modes, and what hashing and reducing cost
(IPDPS 2015, table I and figures 3b and 3c)."""

from harness import checkpoint, statistics, style, text

TITLE = "Over the number of ranks"
ORDER = 30

MIB = 1 << 20
MODES = ["none", "local", "collective"]
APPLICATIONS = {"hpccg-16": "HPCCG", "cm1-8": "CM1"}
REPLICATION = 3
OVERHEAD_REPLICATIONS = [2, 4, 6]


def measure(site, profile, ranks, mode, replication, bytes_a_rank):
    return site.write(ranks, ranks, ["--profile", profile, "--bytes", bytes_a_rank],
                      {"mode": mode, "replication": replication})


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (1 if bench.quick else 16) * MIB
    for profile in list(APPLICATIONS)[:1] if bench.quick else APPLICATIONS:
        for ranks in [1, 4] if bench.quick else [1, 2, 4, 8, 16, 32]:
            bench.say(f"{profile}, {ranks} ranks")
            # Many ranks on few cores take minutes.
            repeats = 1 if bench.quick or ranks > 8 else 3
            variants = {(mode, REPLICATION): mode for mode in MODES}
            # The overhead's own: other K, as far as there are nodes for them, and the baseline.
            for replication in OVERHEAD_REPLICATIONS if ranks > 1 and not bench.quick else []:
                variants["collective", replication] = "collective"
            found = bench.alternate(
                {key: lambda mode=mode, k=key[1]: measure(site, profile, ranks, mode, k,
                                                          bytes_a_rank)
                 for key, mode in variants.items()}, repeats)
            for (mode, replication), lines in found.items():
                bench.record(
                    kind="checkpoint", profile=profile, ranks=ranks, nodes=ranks, mode=mode,
                    replication=replication, bytes_a_rank=bytes_a_rank, medium=site.medium,
                    seconds=statistics.summary([line["write"]["total"] for line in lines]),
                    overhead=statistics.summary(
                        [checkpoint.average(line, "seconds_hashing")
                         + checkpoint.average(line, "seconds_reducing") for line in lines]),
                    stored=checkpoint.total(lines[0], "bytes_stored"))


def tables(records):
    out = []
    for profile, name in checkpoint.measured(records, APPLICATIONS).items():
        rows = []
        for ranks in sorted({r["ranks"] for r in checkpoint.of(records, profile=profile)}):
            found = {mode: checkpoint.of(records, profile=profile, ranks=ranks, mode=mode,
                              replication=REPLICATION)[0] for mode in MODES}
            fast = found["collective"]["seconds"]["median"]
            rows.append([ranks, *(text.spread(found[mode]["seconds"]) for mode in MODES),
                         *(f"{found[mode]['seconds']['median'] / fast:.2f}"
                           for mode in ("none", "local")),
                         *(f"{found[mode]['stored'] / found['collective']['stored']:.2f}"
                           for mode in ("none", "local"))])
        each = text.size(checkpoint.of(records, profile=profile)[0]["bytes_a_rank"])
        out.append((f"{name}: seconds of a checkpoint, K = {REPLICATION}, {each} a rank, one rank a node, "
                    "tmpfs; then the times and the bytes stored in the modes none and local, as "
                    "multiples of those in the mode collective",
                    ["ranks", *MODES, "none/coll.", "local/coll.", "stored: none", "local"], rows))
    return out


def figures(records):
    def draw_times(figure):
        for at, (profile, name) in enumerate(checkpoint.measured(records, APPLICATIONS).items()):
            axes = figure.add_subplot(1, 2, at + 1)
            style.lines(axes, {
                mode: [(r["ranks"], r["seconds"])
                       for r in checkpoint.of(records, profile=profile, mode=mode, replication=REPLICATION)]
                for mode in MODES}, x_label="ranks", title=name, log2=True,
                y_label="time of a checkpoint (s)" if at == 0 else "")

    def overhead(profile):
        series = {"local": [(r["ranks"], r["overhead"]) for r in checkpoint.of(
            records, profile=profile, mode="local", replication=REPLICATION)]}
        for replication in OVERHEAD_REPLICATIONS:
            points = [(r["ranks"], r["overhead"]) for r in checkpoint.of(
                records, profile=profile, mode="collective", replication=replication)]
            if points:
                series[f"collective, K = {replication}"] = points
        return series

    def draw_overhead(profile, name):
        return lambda figure: style.lines(
            figure.add_subplot(), overhead(profile), x_label="ranks", log2=True, title=name,
            y_label="hashing and reduction (s)")

    return [("checkpoint-over-ranks", draw_times),
            *((f"overhead-{name.lower()}", draw_overhead(profile, name))
              for profile, name in checkpoint.measured(records, APPLICATIONS).items())]
