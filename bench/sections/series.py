"""Time steps, under one name and under numbered ones: what a step costs beside the first."""

from harness import checkpoint, statistics, text

TITLE = "Time steps"
ORDER = 75

MIB = 1 << 20
CHUNK = 4096
BLOCK = 4 * MIB  # of the recipe
NODES = 4
RANKS = 8
CHANGES = {"changing-0": "nothing", "changing-1": "1 %, in runs", "scattered-1": "1 %, scattered",
           "changing-10": "10 %, in runs", "scattered-10": "10 %, scattered", "changing-50": "50 %, in runs",
           "scattered-50": "50 %, scattered", "grown": "a fifth of it, as the file grew"}
STEPS = 10
# Of the first step's time, by medium: what a step that changed nothing may take, and one of which a tenth is new.
UNCHANGED = {"disk": 0.4, "tmpfs": 0.5}
TENTH = 0.55
OVERVIEW = ("changing-0", "scattered-10")


def file_of(naming, step):
    return "file" if naming == "one name" else f"step{step:04}"


def write(site, naming, step, options, hints):
    return site.job(NODES, RANKS, [*options, "--step", step], hints, file=file_of(naming, step))


def two_steps(site, naming, profile, copies, bytes_a_rank):
    """What the second of two steps takes, of the first."""
    grows = profile == "grown"
    options = ["--profile", "changing-0" if grows else profile]
    hints = {"replication": copies}
    site.clear()
    first = write(site, naming, 0, [*options, "--bytes", bytes_a_rank], hints)
    before = site.stored_bytes()
    second = write(site, naming, 1, [*options, "--bytes", bytes_a_rank * 5 // 4 if grows else bytes_a_rank], hints)
    grown = site.stored_bytes() - before
    site.clear()
    return {"seconds": second["write"]["total"] / first["write"]["total"],
            "sent": checkpoint.total(second, "bytes_sent") / first["bytes"],
            "stored": checkpoint.total(second, "bytes_stored") / first["bytes"],
            "grown": grown / first["bytes"]}


def measure(bench, site, naming, profile, copies, bytes_a_rank, repeats):
    found = [two_steps(site, naming, profile, copies, bytes_a_rank) for _ in range(repeats)]
    seconds = statistics.summary([one["seconds"] for one in found])
    bench.record(kind="step", medium=site.medium, naming=naming, profile=profile, replication=copies,
                 nodes=NODES, ranks=RANKS, bytes_a_rank=bytes_a_rank, fsync=True, seconds=seconds,
                 **{name: statistics.median([one[name] for one in found])
                    for name in ("sent", "stored", "grown")})
    limit = UNCHANGED[site.medium] if profile == "changing-0" else TENTH if profile.endswith("-10") else None
    if copies < 2 or limit is None:
        return
    about = {"medium": site.medium, "replication": copies, "fsync": "commit", "flush": "none", "cache": "–",
             "bytes_a_rank": bytes_a_rank}
    step = f"a time step (new: {CHANGES[profile]}), {naming}, {NODES} nodes of two ranks: "
    in_overview = naming == "numbered names" and copies == 2 and profile in OVERVIEW
    bench.target(what=step + "write and close, of the first step's", limit=limit, measured=seconds, **about,
                 overview=f"a time step, {naming}, new: {CHANGES[profile]}, to the first" if in_overview else None)
    for what, figure, limit in (
            ("chunks sent, of its data", "sent", 0 if profile == "changing-0" else (copies - 1) * 0.11),
            ("chunks stored, of its data", "stored", 0 if profile == "changing-0" else copies * 0.11),
            ("what all stores grow by, of its data", "grown", 0.01 if profile == "changing-0" else None)):
        if limit is not None:
            bench.target(what=step + what, limit=limit, measured=statistics.summary([one[figure] for one in found]),
                         **about)


def measure_steps(bench, site, naming, bytes_a_rank):
    """Steps like miniFE's: what all stores take in the end, of one step's data."""
    options = ["--profile", "minife-8", "--bytes", bytes_a_rank]
    site.clear()
    for step in range(STEPS):
        line = write(site, naming, step, options, {"replication": 2})
    taken = site.stored_bytes() / line["bytes"]
    site.clear()
    bench.record(kind="steps", medium=site.medium, naming=naming, profile="minife-8", replication=2, nodes=NODES,
                 ranks=RANKS, steps=STEPS, bytes_a_rank=bytes_a_rank, fsync=True, taken=taken)
    if naming != "one name":
        bench.target(what=f"{STEPS} steps like miniFE's, {naming}: what all stores take, of one step's data",
                     limit=2 * (1 + (STEPS - 1) * 0.09), measured=statistics.summary([taken]), medium=site.medium,
                     replication=2, fsync="commit", flush="none", cache="–", bytes_a_rank=bytes_a_rank)


def measure_part(bench, site, file_bytes, part_bytes):
    """What a node writes beside chunks when the first part_bytes of a file's data are new, all in one block of the
    recipe."""
    write(site, "one name", 0, ["--profile", "unique", "--bytes", file_bytes // RANKS], {"replication": 2})
    before = site.metadata()
    write(site, "one name", 1, ["--profile", "unique", "--bytes", part_bytes // RANKS], {"replication": 2})
    written = [sum(size for file, size in files.items() if file not in before[node])
               for node, files in site.metadata().items()]
    site.clear()
    bench.record(kind="part", medium=site.medium, replication=2, nodes=NODES, ranks=RANKS, file_bytes=file_bytes,
                 part_bytes=part_bytes, fsync=True, written=written)
    bench.target(what=f"{text.size(part_bytes)} of a file of {text.size(file_bytes)} written anew, {NODES} nodes of "
                 "two ranks: KiB that a node writes beside chunks, at most", limit=64 if part_bytes < BLOCK else None,
                 measured=statistics.summary([max(written) / 1024]), medium=site.medium, replication=2,
                 fsync="commit", flush="none", cache="–", bytes_a_rank=file_bytes // RANKS)


def run(bench):
    mib = 1 if bench.quick else 64
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        site = checkpoint.Site(bench, medium)
        for naming in ("one name", "numbered names"):
            bench.say(f"{naming}, {medium}")
            for profile in CHANGES:
                for copies in (1, 2, 3) if profile == "changing-0" and not bench.quick else (2,):
                    repeats = 1 if bench.quick else 5 if profile.endswith(("-0", "-10")) else 3
                    measure(bench, site, naming, profile, copies, mib * MIB, repeats)
            measure_steps(bench, site, naming, mib * MIB // 4)
        for part in (RANKS * CHUNK, BLOCK):
            measure_part(bench, site, mib * 16 * MIB, part)


def percent(share):
    return f"{100 * share:.1f} %"


def tables(records):
    rows = [[CHANGES[r["profile"]], r["naming"], r["medium"], r["replication"], text.spread(r["seconds"]),
             percent(r["sent"]), percent(r["stored"]), percent(r["grown"])]
            for r in records if r["kind"] == "step"]
    steps = [[r["steps"], r["naming"], r["medium"], r["replication"], text.number(r["taken"])]
             for r in records if r["kind"] == "steps"]
    parts = [[text.size(r["part_bytes"]), text.size(r["file_bytes"]), r["medium"], r["replication"],
              text.size(max(r["written"]))] for r in records if r["kind"] == "part"]
    return [("A second step: time as a multiple of the first step's; bytes as shares of the step's data",
             ["new", "names", "medium", "K", "time", "sent", "stored", "stores grow by"], rows),
            ("Steps like miniFE's: what all stores take in the end, as a multiple of one step's data",
             ["steps", "names", "medium", "K", "taken"], steps),
            ("A part of a file's data new, in one block of 4 MiB: what a node writes beside chunks, at most",
             ["new", "of", "medium", "K", "a node writes"], parts)]


def figures(records):
    return []
