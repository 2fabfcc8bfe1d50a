"""Jobs on the hosts of a cluster: a Site of the integration tests whose nodes are hosts."""

import os
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import form  # pylint: disable=wrong-import-position
from mounts import why_not as mounting_is_not_possible  # pylint: disable=wrong-import-position,unused-import
from stores import BUILD, Job, Site, process_states  # pylint: disable=wrong-import-position

PATIENCE = 120  # seconds that ranks may take to end after a loss; they take a few


def mpich():
    """Where the MPICH is that the ranks run on, with the driver inside; None if none is named."""
    return pathlib.Path(form.PREFIX) if form.PREFIX else None


def libraries(directory):
    """A directory with that MPICH's library under the name that Debian's programs know it by."""
    directory.mkdir(exist_ok=True)
    link = directory / "libmpich.so.12"
    if not link.is_symlink():
        link.symlink_to(mpich() / "lib" / "libmpi.so.12")
    return directory


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


class ClusterSite(Site):
    """private: the file's directory is each host's own, not one that all share."""

    def __init__(self, cluster, name, private=False):
        root = cluster.directory / name
        root.mkdir()
        super().__init__(root, shared=True)  # nothing has to be pretended
        self.cluster = cluster
        self.stores = cluster.own / "stores"
        (root / "data").mkdir()
        self.path = (cluster.own / "files" if private else root / "data") / name

    def environment(self):
        return {**self.cluster.environment(), **form.environment(),
                "LD_LIBRARY_PATH": str(libraries(self.cluster.directory / "libraries"))}

    def command(self, nodes, ranks, play):
        words = [BUILD / "bin" / "dedup-mpiexec", "--store", self.stores, *self.options,
                 *self.cluster.mpiexec_words(nodes, ranks), *play]
        return self.cluster.command(words)

    def start(self, script, nodes, ranks, hints=None, environment=None, path=None, wrapper=()):
        return super().start(script, nodes, ranks, hints,
                             {**self.environment(), **(environment or {})}, path, wrapper)

    def start_program(self, words, nodes, ranks, environment):
        """Another program than play."""
        return self.start_command(self.command(nodes, ranks, words), ranks, environment)

    def start_command(self, command, ranks, environment):
        """What is not started by dedup-mpiexec alone."""
        self.jobs += 1
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DEDUP_")}
        return Job(command, {**clean, **self.environment(), **environment}, self.root,
                   self.root / f"job{self.jobs}", ranks)

    def store(self, node):
        return self.cluster.root(node) / str(self.stores).lstrip("/") / node

    def node_names(self):
        return self.cluster.names()

    def clear(self):
        """Empties all stores."""
        for node in self.cluster.names():
            shutil.rmtree(self.store(node), ignore_errors=True)

    def kill_at(self, step, rank, count=1):
        """What a job's environment has for the host of that rank to die at a step."""
        return {"DEDUP_TEST_KILL": f"{step}:{count}:{rank}",
                "DEDUP_TEST_KILL_HOST": str(self.cluster.own / "end")}

    def expect_no_rank_left(self):
        """After a job: what it left on the hosts ends soon, and by itself."""
        end = time.monotonic() + PATIENCE
        left = True
        while left and time.monotonic() < end:
            left = {name: found for name in self.cluster.names()
                    if (found := self.cluster.processes(name))}
            time.sleep(0.05)
        assert not left, "\n".join(f"{name}: {process_states(pid)}" for name, found in left.items()
                                   for pid in found)
