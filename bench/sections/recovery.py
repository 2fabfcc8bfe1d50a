"""A node is lost in a running job: the others open the file and read what it had, spread over all of them."""

import json

from harness import checkpoint, statistics, text

TITLE = "Recovery in a running job"
ORDER = 65

MIB = 1 << 20
NODES = 8
SHARES = {"1 %": 0.01, "12.5 %": 0.125}  # of all data; the second is all that the lost node had
ENDS_BADLY = 1  # what mpiexec makes of the rank that is lost


def run(bench):
    site = checkpoint.Site(bench, "tmpfs")
    bytes_a_rank = (1 if bench.quick else 64) * MIB
    repeats = 1 if bench.quick else 15

    def recover(share):
        site.clear()
        out = bench.dedup_mpiexec(
            NODES, NODES, [bench.program("recovery"), site.name(), "--bytes", bytes_a_rank, "--share", share],
            {"replication": 2}, site.stores, touches=4 * NODES * bytes_a_rank,
            options=["-disable-auto-cleanup"], codes=(0, ENDS_BADLY))
        return json.loads(out.splitlines()[0])

    lines = bench.alternate({name: lambda share=share: recover(share) for name, share in SHARES.items()}, repeats)
    for name, found in lines.items():
        bench.record(kind="recovery", share=name, nodes=NODES, bytes_a_rank=bytes_a_rank, bytes=found[0]["bytes"],
                     medium=site.medium, seconds={call: statistics.summary([line["seconds"][call] for line in found])
                                                  for call in found[0]["seconds"]})
    bench.target(what=f"recovery in a running job, 1 of {NODES} nodes lost: milliseconds to read 1 % of all data, of what it had",
                 measured=statistics.summary([1e3 * line["seconds"]["read"] for line in lines["1 %"]]), limit=10,
                 medium=site.medium, replication=2, fsync="commit", flush="none", cache="warm", bytes_a_rank=bytes_a_rank,
                 overview="recovery in a running job: ms to read 1 % of the data", papers="0.65–2.3")
    site.clear()


CALLS = {"open": "open, in a job begun anew", "read": "read", "read once more": "read once more",
         "open again": "close and open again"}


def tables(records):
    found = [r for r in records if r["kind"] == "recovery"]
    rows = [[r["share"], text.size(r["bytes"]), *(text.spread({k: 1e3 * v for k, v in r["seconds"][call].items()
                                                                if k != "samples"}) for call in CALLS)]
            for r in found]
    return [(f"1 of {found[0]['nodes']} nodes is lost, {text.size(found[0]['bytes_a_rank'])} a rank, K = 2, tmpfs: milliseconds",
             ["of all data", "bytes", *CALLS.values()], rows)]


def figures(records):
    return []
