"""Peak memory of a rank with the driver, and without it."""

from harness import checkpoint, statistics, text

TITLE = "Memory"
ORDER = 80

RANKS = 2
MIB = 1 << 20
# Name, collective calls, bytes of a piece (0: contiguous), and whether the bound holds for it.
CASES = [("contiguous, 1 call", 1, 0, True), ("contiguous, 2 calls", 2, 0, True),
         ("contiguous, 4 calls", 4, 0, True), ("pieces of 64 KiB, 1 call", 1, 65536, True),
         ("pieces of 4 KiB, 1 call", 1, 4096, True),
         ("pieces of 512 bytes, 1 call", 1, 512, False),
         ("pieces of 64 bytes, 1 call", 1, 64, False)]


def allowed(bytes_a_rank):
    """What README.md promises: dedup_buffer, and 64 bytes a chunk."""
    return 64 * MIB + bytes_a_rank // 4096 * 64


def run(bench):
    site = checkpoint.Site(bench, "tmpfs", timed=False)
    each = (64 if bench.quick else 512) * MIB
    worst = 0.0
    for name, calls, piece, bounded in CASES[::4] if bench.quick else CASES:
        bench.say(name)
        options = ["--profile", "unique", "--bytes", each, "--calls", calls, "--piece", piece]
        # One rank a node, so that each runs its node's service, too.
        peak = {prefix: site.write(RANKS, RANKS, options, {"replication": 2}, prefix)["peak_bytes"]
                for prefix in ("ufs:", "dedup:")}
        beyond = peak["dedup:"] - peak["ufs:"]
        bench.record(kind="peak", case=name, bytes_a_rank=each, ranks=RANKS, nodes=RANKS,
                     replication=2, medium="tmpfs", ufs_bytes=peak["ufs:"],
                     dedup_bytes=peak["dedup:"], beyond_bytes=beyond,
                     allowed_bytes=allowed(each) if bounded else None)
        if bounded:
            worst = max(worst, beyond / allowed(each))
    bench.target(what="memory of a rank beyond what it takes with `ufs:`, as a share of what is "
                 "allowed: the worst of all accesses in pieces of 4 KiB and more", limit=1.0,
                 measured=statistics.summary([worst]), bound=None, medium="tmpfs", replication=2,
                 fsync="commit", flush="none", cache="–", bytes_a_rank=each, overview="memory of a rank, to what is allowed")


def tables(records):
    found = [r for r in records if r["kind"] == "peak"]
    rows = []
    for r in found:
        limit = r["allowed_bytes"]
        rows.append([r["case"], *(f"{r[f'{side}_bytes'] / MIB:.0f}"
                                  for side in ("ufs", "dedup", "beyond")),
                     "–" if limit is None else f"{limit / MIB:.0f}"])
    each = text.size(found[0]["bytes_a_rank"])
    return [(f"Largest peak resident size of a rank, MiB; {RANKS} ranks on {RANKS} nodes, {each} a rank, "
             "all unique, K = 2", ["write", "`ufs:`", "`dedup:`", "beyond", "allowed"], rows)]


def figures(records):
    return []
