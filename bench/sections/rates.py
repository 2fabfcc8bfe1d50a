"""What this machine allows: the rates of which bounds are made."""

import json
import os
import re

from harness import checkpoint, statistics, text

TITLE = "Rates of this machine"
ORDER = 10

MIB = 1 << 20
COMPUTE = {"memory_read": "reading memory", "copy": "copying memory",
           "find_zeros": "finding zeros, 4 KiB at once",
           "sha256": "SHA-256 of 4 KiB, as the driver calls it",
           "keyed": "the keyed hash of 4 KiB",
           "fast_hash": "the fast 128-bit hash of 4 KiB",
           "checksum": "the fast checksum of 4 KiB"}
WRITERS = 8
AT_ONCE = 128 << 10  # what the driver writes with one call


def openssl_rate(bench, name, seconds):
    """Bytes a second of `openssl speed -evp` at 4 KiB, on one core."""
    out = bench.run(["openssl", "speed", "-evp", name, "-bytes", "4096", "-seconds", seconds,
                     "-elapsed"])
    found = re.search(rf"^{name}\s+([\d.]+)k", out, re.M | re.I)
    if found is None:
        raise ValueError(f"openssl speed says nothing of {name}:\n{out}")
    return float(found.group(1)) * 1000


def compute(bench, ranks):
    out = json.loads(bench.dedup_mpiexec(1, ranks, [bench.program("rates"), "compute"], {},
                                         bench.scratch("tmpfs")))
    return {name: out[name] for name in COMPUTE}


def store(bench, medium, bytes_a_rank, fsync=True, ranks=WRITERS, at_once=AT_ONCE):
    """Bytes a second of all ranks' plain writes together, each to a file of its own."""
    with bench.scratch_for_now(medium) as directory:
        words = [bench.program("rates"), "store", directory, bytes_a_rank, at_once]
        out = bench.dedup_mpiexec(1, ranks, words + (["fsync"] if fsync else []), {}, directory,
                                  touches=2 * ranks * bytes_a_rank)
    return json.loads(out)["store"]


def link(bench, bytes_a_rank, ranks=WRITERS):
    out = bench.dedup_mpiexec(1, ranks, [bench.program("rates"), "link", bytes_a_rank], {},
                              bench.scratch("tmpfs"))
    return json.loads(out)["link"]


def run(bench):
    repeats = 1 if bench.quick else 3
    each = (4 if bench.quick else 64) * MIB
    cores = len(os.sched_getaffinity(0))
    variants = {
        "one": lambda: compute(bench, 1),
        "all": lambda: compute(bench, cores),
        "sha256": lambda: openssl_rate(bench, "sha256", 1),
        "disk": lambda: store(bench, "disk", each),
        "disk_large": lambda: store(bench, "disk", each, at_once=4 * MIB),
        "tmpfs": lambda: store(bench, "tmpfs", each),
        "link": lambda: link(bench, each),
    }
    found = bench.alternate(variants, repeats)
    for ranks, samples in ((1, found["one"]), (cores, found["all"])):
        for name in COMPUTE:
            bench.record(kind="rate", name=name, ranks=ranks,
                         bytes_a_second=statistics.summary([s[name] for s in samples]))
    bench.record(kind="rate", name="openssl_sha256", ranks=1,
                 bytes_a_second=statistics.summary(found["sha256"]))
    for medium in ("disk", "disk_large", "tmpfs"):
        bench.record(kind="rate", name=f"store_{medium}", ranks=WRITERS, bytes_a_rank=each,
                     fsync=True, bytes_a_second=statistics.summary(found[medium]))
    bench.record(kind="rate", name="link", ranks=WRITERS, bytes_a_rank=each,
                 bytes_a_second=statistics.summary(found["link"]))


def rate(records, name, ranks=None):
    """Bytes a second, of this section's records: of so many ranks together, or the only ones."""
    found = [r for r in records if r.get("name") == name and ranks in (None, r["ranks"])]
    if len(found) != 1:
        raise KeyError(f"{len(found)} rates {name} of {ranks or 'any'} ranks")
    return found[0]["bytes_a_second"]["median"]


def hash_seconds_a_byte(records):
    """Of the fast hash and the keyed one, on all cores."""
    cores = len(os.sched_getaffinity(0))
    return 1 / rate(records, "fast_hash", cores) + 1 / rate(records, "keyed", cores)


def checked_to_plain(records):
    """What copying and checking takes, of what copying alone takes, on all cores."""
    cores = len(os.sched_getaffinity(0))
    copy, checksum = (1 / rate(records, name, cores) for name in ("copy", "checksum"))
    return (copy + checksum) / copy


def hash_seconds(records, line):
    """What hashing the data of a job of bench/programs/checkpoint takes on all cores: the fast hash
    and the keyed one of all that is not zero."""
    if line["commits"][0]["mode"] == "none":
        return 0.0
    hashed = checkpoint.total(line, "bytes_written") - checkpoint.total(line, "bytes_zero")
    return hashed * hash_seconds_a_byte(records)


def with_storing(work, store, medium):
    """Seconds of both: storing in memory is the processors' work, like hashing and sending. A disk writes meanwhile."""
    return max(work, store) if medium == "disk" else work + store


def bound_seconds(records, line, store_rate, medium):
    """What hashing, sending and storing the bytes of such a job take at the measured rates."""
    work = hash_seconds(records, line) + checkpoint.total(line, "bytes_sent") / rate(records, "link")
    return with_storing(work, checkpoint.total(line, "bytes_stored") / store_rate, medium)


def tables(records):
    names = {**COMPUTE, "openssl_sha256": "`openssl speed -evp sha256 -bytes 4096`",
             "store_disk": "writing to disk, 128 KiB at once, with fsync",
             "store_disk_large": "the same, 4 MiB at once",
             "store_tmpfs": "writing to tmpfs, 128 KiB at once",
             "link": "sending between ranks, by MPI"}
    rows = []
    for r in records:
        if r["kind"] == "rate":
            s = r["bytes_a_second"]
            rows.append([names[r["name"]], r["ranks"], text.rate(s["median"]),
                         f"{text.rate(s['q1'])} – {text.rate(s['q3'])}"])
    return [("Rates, of all ranks together", ["what", "ranks", "median", "quartiles"], rows)]


def figures(records):
    return []
