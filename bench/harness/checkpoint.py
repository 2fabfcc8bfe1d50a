"""One job of bench/programs/checkpoint, on fresh stores."""

import json
import shutil

from . import statistics, text


class Site:
    """A directory with one file, or several that each job names, and the stores of simulated nodes.
    timed: jobs find their memory ready (harness/memory.py)."""

    def __init__(self, bench, medium, timed=True):
        self._bench = bench
        self._timed = timed
        self.medium = medium
        self.directory = bench.scratch(medium)
        self.stores = self.directory / "stores"
        self._report = self.directory / "report"

    def name(self, prefix="dedup:", file="file"):
        return f"{prefix}{self.directory}/{file}"

    def clear(self):
        """Fresh stores, and no file."""
        shutil.rmtree(self.stores, ignore_errors=True)
        for path in self.directory.iterdir():
            path.unlink()

    def stored_bytes(self):
        """What all stores take on disk, metadata included; a file with several names counts once."""
        taken = {}
        for path in self.stores.rglob("*"):
            about = path.lstat()
            taken[about.st_ino] = about.st_blocks * 512
        return sum(taken.values())

    def metadata(self):
        """Of each node's store, what is neither a chunk nor written before its commit: bytes by what tells one
        file from another."""
        return {store.name: {(path.stat().st_ino, path.stat().st_mtime_ns): path.stat().st_size
                             for path in store.rglob("*") if path.is_file() and path.suffix not in (".seg", ".log")}
                for store in self.stores.iterdir()}

    def lose(self, nodes):
        """The first so many nodes, with everything in their stores."""
        for node in range(nodes):
            shutil.rmtree(self.stores / f"n{node}")

    def job(self, nodes, ranks, options, hints, prefix="dedup:", file="file"):
        """Runs the program on what is there. Its line, with the driver's lines as `commits`."""
        self._report.unlink(missing_ok=True)
        out = self._bench.dedup_mpiexec(
            nodes, ranks, [self._bench.program("checkpoint"), self.name(prefix, file), *options],
            {**hints, "report": self._report}, self.stores,
            touches=touched_bytes(ranks, options, hints) if self._timed else 0)
        line = json.loads(out)
        if self._report.exists():
            line["commits"] = [json.loads(each)
                               for each in self._report.read_text(encoding="utf-8").splitlines()]
        return line

    def write(self, nodes, ranks, options, hints, prefix="dedup:"):
        """Writes, reads back, compares; then everything is removed again."""
        self.clear()
        line = self.job(nodes, ranks, options, hints, prefix)
        if line["checked_bytes"] != line["bytes"]:
            raise AssertionError(f"{line['checked_bytes']} of {line['bytes']} bytes were compared")
        self.clear()
        return line


def touched_bytes(ranks, options, hints):
    """What a job of the program takes at most: data, copies, and what is read back."""
    options = [str(option) for option in options]
    if "--bytes" not in options:
        return 0
    bytes_a_rank = int(options[options.index("--bytes") + 1])
    return ranks * bytes_a_rank * (2 + hints.get("replication", 1))


def total(line, figure):
    """A figure of the driver's report over all commits of a job: the sum over all ranks."""
    return sum(commit[figure]["total"] for commit in line["commits"])


def largest(line, figure):
    """The largest of any rank, of the commit that had most."""
    return max(commit[figure]["max"] for commit in line["commits"])


def average(line, figure):
    return sum(commit[figure]["avg"] for commit in line["commits"])


def of(records, **values):
    """The records of checkpoints that have these values."""
    return [r for r in records if r["kind"] == "checkpoint"
            and all(r[name] == value for name, value in values.items())]


def measured(records, applications):
    """Of the names by profile those that are in the records."""
    return {profile: name for profile, name in applications.items()
            if of(records, profile=profile)}


PHASES = ["open", "write", "sync", "read", "close"]
PARTS = ["hashing", "reducing", "exchanging", "storing"]


def phases(lines):
    """Where the time of several equal jobs goes: medians of seconds, of the slowest rank for calls
    of MPI, on average over the ranks for what the driver reports of itself."""
    out = {name: statistics.median([line["write"][name] for line in lines])
           for name in ["total", *PHASES] if name in lines[0]["write"]}
    if "commits" in lines[0]:
        out |= {name: statistics.median([average(line, f"seconds_{name}") for line in lines])
                for name in PARTS}
    return out


def phase_table(rows):
    """The same as a table, for [(name, phases)]."""
    columns = ["total", *PHASES, *PARTS]
    used = [c for c in columns if any(c in phases for _, phases in rows)]
    return ("Where the time goes: seconds of the slowest rank in calls of MPI-IO, and, on average "
            "over the ranks, in the driver's own parts", ["job", *used],
            [[name, *(text.number(phases[c]) if c in phases else "–" for c in used)]
             for name, phases in rows])
