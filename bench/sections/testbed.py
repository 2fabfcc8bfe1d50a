"""A scale model of the 2015 paper's test bed: 34 hosts with 12 ranks each, beside its Table I."""

import contextlib
import json
import os
import pathlib
import shutil
import sys

from harness import checkpoint, jobs, statistics, style, text
from sections import paced

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "cluster"))
import cluster as clusters  # noqa: E402

TITLE = "A scale model of the paper's test bed"
ORDER = 68

MIB = 1 << 20
HOSTS, RANKS_A_HOST = 34, 12
FEWER = [34, 24, 16, 8]  # hosts, if so many do not work
REPLICATION = 3
MODES = ["none", "local", "collective"]
SCALE = 1000             # of the data; the profiles' processes had 1.5 GB and 800 MB (V-B)
PROFILES = {"hpccg-408": 1536 * MIB // SCALE // 4096 * 4096,
            "cm1-408": 800 * MIB // SCALE // 4096 * 4096}
# IPDPS 2015, Table I at 408 processes: seconds to completion, and without a checkpoint.
TABLE_1 = {"hpccg-408": {"none": 1188, "local": 547, "collective": 375, "baseline": 279},
           "cm1-408": {"none": 1687, "local": 828, "collective": 558, "baseline": 382}}


def paper(profile, mode):
    """Its increase over the baseline, in seconds."""
    return TABLE_1[profile][mode] - TABLE_1[profile]["baseline"]


class Model:
    """Hosts on this machine, and a file that they share."""

    def __init__(self, bench, directory, prefix, hosts):
        self._bench = bench
        self._prefix = pathlib.Path(prefix)
        self._directory = directory
        self.ranks = hosts * (2 if bench.quick else RANKS_A_HOST)
        (directory / "cluster").mkdir()
        self._cluster = clusters.Cluster(directory / "cluster", [f"h{n}" for n in range(hosts)])
        self._cluster.introduce()
        # The programs are made for Debian's MPICH, whose library has another name.
        (directory / "lib").mkdir()
        (directory / "lib" / "libmpich.so.12").symlink_to(self._prefix / "lib" / "libmpi.so.12")

    def close(self):
        self._cluster.close()

    def clear(self):
        for name in self._cluster.names():
            stores = self._cluster.own / "stores" / name
            shutil.rmtree(self._cluster.root(name) / stores.relative_to("/"), ignore_errors=True)
        for name in ("file", "report"):
            (self._directory / name).unlink(missing_ok=True)

    def job(self, options, hints):
        """Runs the checkpoint program on all hosts. Its line, with the driver's as `commits`."""
        report = self._directory / "report"
        report.unlink(missing_ok=True)
        environment = {f"DEDUP_{name.upper()}": value for name, value in hints.items()}
        environment |= {**self._cluster.environment(), "DEDUP_PRELOAD": "0",
                        "DEDUP_REPORT": report, "MPIEXEC": self._prefix / "bin" / "mpiexec",
                        "LD_LIBRARY_PATH": self._directory / "lib"}
        out = self._bench.run(self._cluster.command(
            [self._bench.build / "bin" / "dedup-mpiexec", "--store", self._cluster.own / "stores",
             *self._cluster.mpiexec_words(self._cluster.names(), self.ranks),
             self._bench.program("checkpoint"), f"dedup:{self._directory}/file", *options]),
            environment)
        line = json.loads(out)
        if report.exists():
            line["commits"] = [json.loads(each)
                               for each in report.read_text(encoding="utf-8").splitlines()]
        return line

    def write(self, options, hints):
        """As paced.write()."""
        self.clear()
        line = self.job([*options, "--no-read"], hints)
        read = self.job([*options, "--no-write"], {})
        if read["checked_bytes"] != line["bytes"]:
            raise AssertionError(f"{read['checked_bytes']} of {line['bytes']} bytes were compared")
        self.clear()
        return line


def record(bench, profile, mode, hosts, of_node, bytes_a_rank, lines):
    bench.record(kind="testbed", profile=profile, mode=mode, hosts=hosts, ranks=lines[0]["ranks"],
                 replication=REPLICATION, bytes_a_rank=bytes_a_rank, rates=of_node,
                 medium="tmpfs",
                 seconds=statistics.summary([line["write"]["total"] for line in lines]),
                 at_rates=paced.at_rates(lines[0], hosts, of_node, "put") if of_node else None,
                 stored=checkpoint.total(lines[0], "bytes_stored"),
                 written=checkpoint.total(lines[0], "bytes_written"),
                 sent=checkpoint.total(lines[0], "bytes_sent"), phases=checkpoint.phases(lines))


def measure(bench, model, hosts):
    of_node = paced.rates((2 if bench.quick else 1.25) * MIB)
    for profile in list(PROFILES)[:1] if bench.quick else PROFILES:
        bytes_a_rank = PROFILES[profile] // (4 if bench.quick else 1) // 4096 * 4096
        options = ["--profile", profile, "--bytes", bytes_a_rank]
        found = bench.alternate(
            {mode: lambda mode=mode: model.write(
                options, {"mode": mode, "replication": REPLICATION, "exchange": "put",
                          "test_pace": paced.pace(of_node)}) for mode in MODES}, 1)
        for mode, lines in found.items():
            record(bench, profile, mode, hosts, of_node, bytes_a_rank, lines)
        # What so many processes take on these cores, whatever the rates.
        line = model.write(options, {"mode": "collective", "replication": REPLICATION,
                                    "exchange": "put"})
        record(bench, profile, "collective, not paced", hosts, None, bytes_a_rank, [line])


def prefix_of_mpich(bench):
    """An MPICH whose ranks talk over sockets, with the driver inside: built if need be."""
    named = os.environ.get("DEDUP_TEST_MPI")
    options = ["--quick"] if bench.quick else []
    return named or bench.run([ROOT / "test/inside/build", *options], timeout=1800).split()[-1]


def leave_out(bench, reason):
    bench.say(f"left out: {reason}")
    bench.record(kind="left out", reason=reason)


def run(bench):
    reason = clusters.why_not()
    if reason is not None:
        leave_out(bench, reason)
        return
    try:
        prefix = prefix_of_mpich(bench)
    except jobs.Failed as error:
        leave_out(bench, f"no MPICH with the driver inside: {str(error).strip()[-300:]}")
        return
    for hosts in [3] if bench.quick else FEWER:
        with contextlib.ExitStack() as stack:
            # Hosts have a /dev/shm of their own, and their stores in a tmpfs of their own.
            directory = stack.enter_context(bench.scratch_for_now("disk"))
            try:
                model = Model(bench, directory, prefix, hosts)
                stack.callback(model.close)
                measure(bench, model, hosts)
                return
            except clusters.Unavailable as error:
                leave_out(bench, f"no namespaces for hosts: {error}")
                return
            except jobs.Failed as error:
                bench.say(f"not on {hosts} hosts: {str(error)[:200]}")
                bench.record(kind="failed", hosts=hosts, reason=str(error)[:1000])


def ratios(records, profile, mode):
    """Of times with a mode and with collective: the paper's, here, and at the rates."""
    found = {r["mode"]: r for r in records if r["kind"] == "testbed" and r["profile"] == profile}
    mine, theirs = found["collective"], found[mode]
    return (paper(profile, mode) / paper(profile, "collective"),
            theirs["seconds"]["median"] / mine["seconds"]["median"],
            theirs["at_rates"] / mine["at_rates"])


def tables(records):
    found = [r for r in records if r["kind"] == "testbed"]
    out = []
    left_out = [[r["hosts"] if "hosts" in r else "all", r["reason"].splitlines()[0]]
                for r in records if r["kind"] in ("left out", "failed")]
    if found:
        rows = []
        for r in found:
            if not r["rates"]:
                rows.append([r["profile"], r["mode"], "–", "–",
                             text.number(r["seconds"]["median"]), "–", "–", "–", "–"])
                continue
            theirs, mine, rated = ratios(found, r["profile"], r["mode"])
            rows.append([r["profile"], r["mode"], paper(r["profile"], r["mode"]), f"{theirs:.2f}",
                         text.number(r["seconds"]["median"]), f"{mine:.2f}",
                         text.number(r["at_rates"]), f"{rated:.2f}",
                         f"{100 * r['stored'] / r['written'] / REPLICATION:.1f}"])
        one = found[0]
        sizes = ", ".join(f"{p} {text.size(r['bytes_a_rank'])} a rank" for p, r in
                          {r["profile"]: r for r in found}.items())
        rates = ", ".join(f"{name} {text.size(rate)}/s" for name, rate in one["rates"].items())
        out.append((f"{one['ranks']} ranks on {one['hosts']} hosts, K = {REPLICATION}; {sizes}; a host's "
                    f"rates: {rates}. Seconds of a checkpoint: the paper's (Table I at 408 processes, "
                    "increase over its baseline), here, and what the bytes alone take at the rates; each also as "
                    "a multiple of collective's; stored, in % of K times what was written",
                    ["data", "mode", "paper", "× coll.", "here", "× coll.", "at the rates",
                     "× coll.", "stored %"], rows))
        out.append(checkpoint.phase_table([(f"{r['profile']}, {r['mode']}", r["phases"])
                                           for r in found]))
    if left_out:
        out.append(("Not measured", ["hosts", "why"], left_out))
    return out


def figures(records):
    found = [r for r in records if r["kind"] == "testbed" and r["rates"]]
    why = next((r["reason"] for r in records if r["kind"] in ("left out", "failed")), "")

    def draw(figure):
        if not found:
            figure.text(0.5, 0.5, f"left out:\n{why[:80]}", ha="center", va="center")
            return
        profiles = list(dict.fromkeys(r["profile"] for r in found))
        for at, profile in enumerate(profiles):
            axes = figure.add_subplot(1, len(profiles), at + 1)
            modes = [mode for mode in MODES if mode != "collective"]
            all_ratios = [ratios(found, profile, mode) for mode in modes]
            style.bars(axes, modes, {
                name: [r[column] for r in all_ratios]
                for column, name in enumerate(("paper", "here", "bytes alone"))},
                y_label="time, × collective" if at == 0 else "", title=profile)

    return [("testbed", draw)]
