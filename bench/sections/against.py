"""Against what users have today: ROMIO's own driver, and plain partner copies."""

import json

from harness import checkpoint, statistics, text
from sections import rates

TITLE = "Against what users have today"
ORDER = 70
NEEDS = ["rates"]

MIB = 1 << 20
KIB = 1 << 10
RANKS = 8
NODES = 4


class Side:
    """One of the two sides of a row: jobs whose lines are kept for their phases."""

    def __init__(self, site, options, hints, prefix="dedup:", nodes=NODES, ranks=RANKS):
        self.lines = []
        self._site = site
        self._arguments = (nodes, ranks, options, hints, prefix)

    def __call__(self):
        self.lines.append(self._site.write(*self._arguments))
        return self.lines[-1]["write"]


def record_pair(bench, name, dedup, other, **values):
    """The seconds and phases of both sides of a row."""
    for side, (label, lines, seconds) in (("dedup", dedup), ("other", other)):
        bench.record(kind="pair", row=name, side=side, label=label,
                     seconds=statistics.summary(seconds),
                     phases=checkpoint.phases(lines) if lines else {}, **values)


# ---- Writing ------------------------------------------------------------------------------------


def whole_file(bench, bytes_a_rank, repeats):
    site = checkpoint.Site(bench, "disk")
    data = ["--profile", "unique", "--bytes", bytes_a_rank]
    dedup = Side(site, data, {"replication": 1})
    ufs = Side(site, [*data, "--sync"], {}, "ufs:")
    found = bench.alternate({"dedup": dedup, "ufs": ufs,
                             "store": lambda: rates.store(bench, "disk", bytes_a_rank)}, repeats)
    ours, theirs = ([s["total"] for s in found[side]] for side in ("dedup", "ufs"))
    name = "all unique, K = 1, against `ufs:`"
    record_pair(bench, name, ("dedup:, close", dedup.lines, ours),
                ("ufs:, sync and close", ufs.lines, theirs), medium="disk", replication=1,
                bytes_a_rank=bytes_a_rank)
    store = RANKS * bytes_a_rank / statistics.median(found["store"])
    bench.target(what=f"{name}: time", limit=1.3, measured=statistics.ratio(ours, theirs),
                 bound=max(rates.hash_seconds(bench.records("rates"), dedup.lines[0]), store) / store,
                 medium="disk", replication=1, fsync="commit", flush="none", cache="–",
                 bytes_a_rank=bytes_a_rank, overview="K = 1, no duplicates, to `ufs:`", peer=1)


def partner_copies(bench, medium, bytes_a_rank, repeats):
    site = checkpoint.Site(bench, medium)
    dedup = Side(site, ["--profile", "unique", "--bytes", bytes_a_rank], {"replication": 2})

    def plain():
        with bench.scratch_for_now(medium) as directory:
            return json.loads(bench.dedup_mpiexec(
                NODES, RANKS, [bench.program("partner_copy"), directory, bytes_a_rank, "fsync"], {},
                directory / "stores", touches=4 * RANKS * bytes_a_rank))["seconds"]

    found = bench.alternate(
        {"dedup": dedup, "plain": plain,
         "store": lambda: rates.store(bench, medium, 2 * bytes_a_rank)}, repeats)
    ours = [s["total"] for s in found["dedup"]]
    name = "all unique, K = 2, against plain partner copies"
    record_pair(bench, name, ("dedup:, close", dedup.lines, ours),
                ("partner_copy, fsync", [], found["plain"]), medium=medium, replication=2,
                bytes_a_rank=bytes_a_rank)
    data = RANKS * bytes_a_rank
    store = 2 * data / statistics.median(found["store"])
    machine = bench.records("rates")
    link = data / rates.rate(machine, "link")
    work = rates.hash_seconds(machine, dedup.lines[0]) + link
    bound = rates.with_storing(work, store, medium) / rates.with_storing(link, store, medium)
    bench.target(what=f"{name}: time", limit={"tmpfs": 1.2, "disk": 1.1}[medium],
                 measured=statistics.ratio(ours, found["plain"]),
                 bound=bound, medium=medium, replication=2, fsync="commit", flush="none", cache="–",
                 bytes_a_rank=bytes_a_rank, overview="K = 2, no duplicates, to plain partner copies", peer=1)


def many_collective(bench, calls, repeats):
    site = checkpoint.Site(bench, "disk")
    data = ["--profile", "unique", "--bytes", calls * 64 * KIB, "--calls", calls]
    sides = {"ufs": Side(site, [*data, "--sync"], {}, "ufs:"),
             **{k: Side(site, data, {"replication": k}) for k in (1, 2)}}
    found = bench.alternate(sides, repeats)
    theirs = [s["total"] for s in found["ufs"]]
    for replication in (1, 2):
        ours = [s["total"] for s in found[replication]]
        name = f"collective writes of 64 KiB, {calls} times, K = {replication}, against `ufs:`"
        record_pair(bench, name, ("dedup:, close", sides[replication].lines, ours),
                    ("ufs:, sync and close", sides["ufs"].lines, theirs), medium="disk",
                    replication=replication, bytes_a_rank=calls * 64 * KIB)
        bench.target(what=f"{name}: time", limit=1.5 if replication == 1 else None, bound=None,
                     measured=statistics.ratio(ours, theirs), medium="disk",
                     replication=replication, fsync="commit", flush="none", cache="–",
                     bytes_a_rank=calls * 64 * KIB, peer=1,
                     overview=f"collective writes of 64 KiB, K = {replication}, to `ufs:`")


def small_independent(bench, calls, repeats):
    site = checkpoint.Site(bench, "disk")
    ranks = 4
    data = ["--profile", "unique", "--bytes", calls * KIB, "--calls", calls, "--independent"]
    for nodes, limit in ((1, 0.5), (4, 0.25)):
        sides = {"dedup": Side(site, data, {"replication": 1}, nodes=nodes, ranks=ranks),
                 "ufs": Side(site, data, {}, "ufs:", nodes=nodes, ranks=ranks)}
        found = bench.alternate(sides, repeats)
        ours, theirs = ([s["write"] for s in found[side]] for side in ("dedup", "ufs"))
        name = (f"independent writes of 1 KiB, {ranks} ranks on {nodes} "
                f"{'node' if nodes == 1 else 'nodes'}, `immediate`")
        record_pair(bench, name, ("dedup:, writes only", sides["dedup"].lines, ours),
                    ("ufs:, writes only", sides["ufs"].lines, theirs), medium="disk",
                    replication=1, bytes_a_rank=calls * KIB)
        # Of rates: theirs in seconds over ours in seconds.
        bench.target(what=f"{name}: rate, as a share of that of `ufs:`", limit=limit, at_least=True,
                     measured=statistics.ratio(theirs, ours), bound=None, medium="disk",
                     replication=1, fsync="never", flush="none", cache="–",
                     bytes_a_rank=calls * KIB, peer=1,
                     overview=f"rate of independent writes of 1 KiB, {nodes} {'node' if nodes == 1 else 'nodes'}, to `ufs:`")


# ---- Reading ------------------------------------------------------------------------------------


def reading(bench, bytes_a_rank, repeats):
    ours = checkpoint.Site(bench, "disk")
    theirs = checkpoint.Site(bench, "disk")
    data = ["--profile", "unique", "--bytes", bytes_a_rank, "--writers", RANKS]
    ours.job(NODES, RANKS, [*data, "--no-read"], {"replication": 2})
    theirs.job(NODES, RANKS, [*data, "--no-read"], {}, "ufs:")
    bound = rates.checked_to_plain(bench.records("rates"))
    for nodes, limit, name in (("n0,n1,n2,n3", 1.15, "reading whole"),
                               ("n1,n2,n3", 1.5, "reading whole, after losing a node")):
        if nodes != "n0,n1,n2,n3":
            ours.lose(1)
        found = bench.alternate(
            {"dedup": lambda: ours.job(nodes, RANKS, [*data, "--no-write"], {}),
             "ufs": lambda: theirs.job(nodes, RANKS, [*data, "--no-write"], {}, "ufs:")}, repeats)
        seconds = [[line["read"]["total"] for line in found[side]] for side in ("dedup", "ufs")]
        for side, label, lines, each in (("dedup", "dedup:, open to close", found["dedup"],
                                          seconds[0]),
                                         ("other", "ufs:, open to close", found["ufs"],
                                          seconds[1])):
            bench.record(kind="pair", row=f"{name}, K = 2, against `ufs:`", side=side, label=label,
                         seconds=statistics.summary(each), medium="disk", replication=2,
                         bytes_a_rank=bytes_a_rank,
                         phases={key: statistics.median([line["read"][key] for line in lines])
                                 for key in lines[0]["read"]})
        bench.target(what=f"{name}, against `ufs:` reading the plain file: time", limit=limit,
                     measured=statistics.ratio(*seconds), bound=bound,
                     medium="disk", replication=2, fsync="–", flush="none", cache="warm",
                     bytes_a_rank=bytes_a_rank, overview=f"{name}, to `ufs:`", peer=1)


# ---- One rank -----------------------------------------------------------------------------------


def one_rank(bench, bytes_a_rank, repeats):
    """Cutting, fingerprints and the rank's own deduplication: what the driver reports as hashing."""
    site = checkpoint.Site(bench, "tmpfs")

    def ours(profile):
        line = site.write(1, 1, ["--profile", profile, "--bytes", bytes_a_rank],
                          {"replication": 1})
        return checkpoint.total(line, "bytes_written") / checkpoint.total(line, "seconds_hashing")

    found = bench.alternate({
        "unique": lambda: ours("unique"), "zero": lambda: ours("zero"),
        "openssl": lambda: rates.openssl_rate(bench, "sha256", 1),
        "read": lambda: rates.compute(bench, 1)["memory_read"]}, repeats)
    common = {"medium": "tmpfs", "replication": 1, "fsync": "–", "flush": "none", "cache": "–",
              "bytes_a_rank": bytes_a_rank, "at_least": True}
    unique = statistics.ratio(found["unique"], found["openssl"])
    name = "one rank's cut, fingerprints and own deduplication, all unique: rate, as a multiple of " \
        "`openssl speed -evp sha256` at 4 KiB"
    machine = bench.records("rates")
    bench.target(what=name, limit=0.9, measured=unique, bound=1.0, **common)
    bench.target(what=f"{name}, beaten", limit=3.0, measured=unique,
                 bound=1 / sum(rates.rate(machine, "openssl_sha256") / rates.rate(machine, one, 1)
                               for one in ("fast_hash", "keyed")), **common)
    bench.target(what="zero data: rate, as a share of the rate of reading memory", limit=0.7,
                 measured=statistics.ratio(found["zero"], found["read"]),
                 bound=rates.rate(machine, "find_zeros", 1) / rates.rate(machine, "memory_read", 1),
                 **common)
    for name in ("unique", "zero", "openssl", "read"):
        bench.record(kind="one rank", name=name, bytes_a_rank=bytes_a_rank,
                     bytes_a_second=statistics.summary(found[name]))


def run(bench):
    bytes_a_rank = (1 if bench.quick else 64) * MIB
    few, many = (1, 1) if bench.quick else (3, 5)
    bench.say("one copy")
    whole_file(bench, bytes_a_rank, many)
    for medium in ("tmpfs",) if bench.quick else ("tmpfs", "disk"):
        bench.say(f"two copies, {medium}")
        partner_copies(bench, medium, bytes_a_rank, few)
    bench.say("reading")
    # A tenth of a second each: the median of a few would be noise.
    reading(bench, bytes_a_rank, 1 if bench.quick else 15)
    bench.say("one rank")
    one_rank(bench, (4 if bench.quick else 256) * MIB, few)
    bench.say("small writes")
    small_independent(bench, 64 if bench.quick else 4096, many)
    many_collective(bench, 20 if bench.quick else 1000, few)


def tables(records):
    pairs = [r for r in records if r["kind"] == "pair"]
    rows = [[r["row"], r["medium"], text.size(r["bytes_a_rank"]), r["label"],
             text.spread(r["seconds"])] for r in pairs]
    labels = {"unique": "cut, fingerprints and own deduplication, all unique",
              "zero": "the same, all zeros", "openssl": "`openssl speed -evp sha256` at 4 KiB",
              "read": "reading memory"}
    single = [[labels[r["name"]], text.size(r["bytes_a_rank"]),
               text.rate(r["bytes_a_second"]["median"])]
              for r in records if r["kind"] == "one rank"]
    return [(f"Seconds of both sides, {RANKS} ranks on {NODES} nodes unless said",
             ["what", "medium", "a rank", "side", "seconds"], rows),
            ("One rank on one core", ["what", "bytes", "rate"], single),
            checkpoint.phase_table([(f"{r['row']}, {r['medium']}: {r['label']}", r["phases"])
                                    for r in pairs if r["phases"]])]


def figures(records):
    return []
