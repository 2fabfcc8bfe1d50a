"""What a section gets to work with."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from . import jobs, memory


def disk_directory():
    """Where scratch("disk") is: DEDUP_BENCH_DISK, or /var/tmp, which is not meant to be a tmpfs."""
    return pathlib.Path(os.environ.get("DEDUP_BENCH_DISK") or "/var/tmp")


MEDIA = {"disk": disk_directory(), "tmpfs": pathlib.Path("/dev/shm")}


class Bench:
    """One section's view of a run. Sections use what is documented here and nothing else.

    quick    small sizes and few repeats: only to see that everything works
    build    the build tree
    data     real files given with --data, or []
    """

    def __init__(self, section, build, records, quick=False, data=(), say=print):
        self.section = section
        self.build = pathlib.Path(build)
        self.quick = quick
        self.data = [pathlib.Path(path) for path in data]
        self._records = records
        self._say = say
        self._scratch = []

    def say(self, text):
        """A line for who watches the run."""
        self._say(f"{self.section}: {text}")

    # ---- Records ------------------------------------------------------------------------------

    def record(self, **values):
        """Adds one JSON object to what the run writes; `section` is set here."""
        self._records.append({"section": self.section, **values})

    def records(self, section=None):
        """What this section, or an earlier one (module attribute NEEDS), has recorded so far."""
        return [r for r in self._records if r["section"] == (section or self.section)]

    def target(self, *, what, measured, limit, at_least=False, bound=None, medium, replication,
               fsync, flush, cache, bytes_a_rank, overview=None, papers=None, peer=None, **more):
        """Records a row of the table of targets (table_of_targets in harness/targets.py).

        measured: a summary (harness/statistics.py) of the ratio that the target is about;
        limit: what its median must not exceed, or with at_least not fall below; None: reported
        only. bound: the same ratio if only the measured hash, copy, store and link rates limited
        it. The rest is what the row names: medium "disk" or "tmpfs", fsync "commit" or "never",
        flush "none" or "close", cache "warm" or "-", and so on, "-" where it has no meaning.
        overview: what it is called in the table that the page begins with, if it stands there;
        papers, peer: the same ratio as the papers have it, and of another's software.
        """
        met = None
        if limit is not None:
            met = measured["median"] >= limit if at_least else measured["median"] <= limit
        self.record(kind="target", what=what, measured=measured, limit=limit, at_least=at_least,
                    met=met, bound=bound, medium=medium, replication=replication, fsync=fsync,
                    flush=flush, cache=cache, bytes_a_rank=bytes_a_rank, overview=overview,
                    papers=papers, peer=peer, **more)

    # ---- Files --------------------------------------------------------------------------------

    def scratch(self, medium):
        """A fresh directory on "disk" or "tmpfs"; removed when the section ends."""
        path = pathlib.Path(tempfile.mkdtemp(prefix="dedup-bench.", dir=MEDIA[medium]))
        self._scratch.append(path)
        return path

    @contextlib.contextmanager
    def scratch_for_now(self, medium):
        """The same, removed at the end of the `with`."""
        path = self.scratch(medium)
        try:
            yield path
        finally:
            shutil.rmtree(path)
            self._scratch.remove(path)

    def clean_up(self):
        for path in self._scratch:
            shutil.rmtree(path, ignore_errors=True)
        self._scratch.clear()

    # ---- Programs -----------------------------------------------------------------------------

    def program(self, name):
        """The path of a program of bench/programs."""
        return self.build / "bench" / "programs" / name

    def run(self, words, environment=None, timeout=jobs.HANG_GUARD_SECONDS, codes=(0,)):
        """The output of a command; raises jobs.Failed, with its standard error, if it ends with none of these codes."""
        return jobs.run(words, jobs.clean_environment(**(environment or {})), timeout, codes)

    def dedup_mpiexec(self, nodes, ranks, words, hints, store, touches=0, options=(), codes=(0,)):
        """Runs a job on simulated nodes with the driver preloaded, and returns its output.

        nodes: a number or "n0,n2"; hints: {"replication": 3, ...}, without dedup_; store: the
        directory with a store for each node. For `ufs:` files too, so that both sides of a
        comparison have the same libraries and the same way of waiting. touches: bytes of memory
        that the job will take, page cache included, about; they are made ready before it starts.
        options: of mpiexec. codes: those that it may end with.
        Without hints named test_..., which only the test build knows, it is what users have.
        """
        memory.warm(min(touches, memory.free() // 2))
        environment = {f"DEDUP_{name.upper()}": value for name, value in hints.items()}
        build = self.build / "test" if any(name.startswith("test_") for name in hints) else self.build
        return self.run([build / "bin" / "dedup-mpiexec", "--nodes", nodes, "--store", store,
                         *options, "-n", ranks, *words], environment, codes=codes)

    # ---- Comparing ----------------------------------------------------------------------------

    def alternate(self, variants, repeats):
        """Runs {name: callable} in turn, `repeats` times; returns {name: [what it returned]}.

        Each round begins with another variant, so that none always comes after the same one.
        """
        names = list(variants)
        samples = {name: [] for name in names}
        for turn in range(repeats):
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                samples[name].append(variants[name]())
        return samples
