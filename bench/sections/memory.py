"""Peak memory of a rank with the driver, and without it."""

from harness import text

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


def peak(bench, prefix, mib, calls, piece):
    """Largest peak resident size of a rank, in bytes. One rank a node: each runs a service."""
    with bench.scratch_for_now("tmpfs") as directory:
        out = bench.dedup_mpiexec(RANKS, RANKS,
                                  [bench.program("memory"), f"{prefix}{directory}/file", mib,
                                   calls, piece], {"replication": 2}, directory / "stores")
    return int(out) * 1024


def run(bench):
    mib = 64 if bench.quick else 1024
    for name, calls, piece, bounded in CASES[::4] if bench.quick else CASES:
        found = bench.alternate(
            {prefix: lambda prefix=prefix: peak(bench, prefix, mib, calls, piece)
             for prefix in ("ufs:", "dedup:")}, 1)
        beyond = found["dedup:"][0] - found["ufs:"][0]
        bench.record(kind="peak", case=name, bytes_a_rank=mib * MIB, ranks=RANKS, nodes=RANKS,
                     replication=2, medium="tmpfs", ufs_bytes=found["ufs:"][0],
                     dedup_bytes=found["dedup:"][0], beyond_bytes=beyond,
                     allowed_bytes=allowed(mib * MIB) if bounded else None)


def tables(records):
    found = [r for r in records if r["kind"] == "peak"]
    rows = []
    for r in found:
        limit = r["allowed_bytes"]
        rows.append([r["case"], *(f"{r[f'{side}_bytes'] / MIB:.0f}"
                                  for side in ("ufs", "dedup", "beyond")),
                     "–" if limit is None else f"{limit / MIB:.0f}"])
    each = text.size(found[0]["bytes_a_rank"])
    return [(f"Largest peak resident size of a rank, MiB; {RANKS} ranks on {RANKS} nodes, {each} a rank, all unique, K = 2",
             ["write", "`ufs:`", "`dedup:`", "beyond", "allowed"], rows)]


def figures(records):
    return []
