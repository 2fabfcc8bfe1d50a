"""A node is lost while a job runs: its other ranks open the file again, without being started anew.

The processes of the lost node are really killed. Ranks cannot take each other along into MPI's calls
then, so all that is done after a loss is done on a communicator (`part`) without the lost ones, which
was made before; and the ranks end without MPI_Finalize, which takes all of them.
"""

import pytest

import form
from conftest import only_dedup
from stores import Model, Script, Site, noise, parts

pytestmark = only_dedup

NODES = 4
SIZE = 1_500_000  # large enough to be dumped at once
HINTS = {"replication": 2, "chunk_size": 4096}


@pytest.fixture(params=[True, False], ids=["shared", "private"])
def site(tmp_path, request):
    made = Site(tmp_path, shared=request.param)
    # The job goes on without its dead; what a signal ended, mpiexec would end with all on its host.
    made.options = ["-disable-auto-cleanup"]
    made.launcher = ["sh", "-c", 'trap "" USR1; "$@"; code=$?; [ $code -eq 137 ] || exit $code', "sh"]
    return made


def others(ranks, lost):
    return [rank for rank in range(ranks) if rank not in lost]


class Recovery:
    """A job of a rank a node, one of which dies."""

    def __init__(self, site, lost, ranks=NODES):
        self.site = site
        self.ranks = ranks
        self.lost = lost
        self.rest = others(ranks, [lost])
        self.old = Model(noise("old", SIZE))
        self.pids = site.root / "doomed"
        self.script = Script().open("wc")
        self.script.write("all-at", parts(bytes(self.old.content), ranks)).close()
        self.script.add(f"@{lost}", "pid", self.pids).add("barrier")
        self.script.add("part", *self.rest)
        self.script.add(f"@{lost}", "wait", site.root / "never")
        self.reads = 0

    def kill(self):
        """By one of the others, which goes on when it has died."""
        first = self.rest[0]
        self.script.add(f"@{first}", "kill", self.pids)
        self.script.add(f"@{first}", "touch", self.site.root / "killed")
        for rank in self.rest:
            self.script.add(f"@{rank}", "wait", self.site.root / "killed")
        return self

    def write(self, model, handle=0):
        pieces = parts(bytes(model.content), len(self.rest))
        self.script.write("all-at", dict(zip(self.rest, pieces.values())), handle)
        return self

    def read(self, handle=0):
        self.reads += 1
        self.script.add("read", handle, self.site.root / f"in-job{self.reads}", 0)
        return self

    def content(self, number):
        return (self.site.root / f"in-job{number}").read_bytes()

    def run(self, environment=None, hints=None):
        self.script.add("leave")
        job = self.site.run(self.script, self.ranks, self.ranks, {**HINTS, **(hints or {})},
                            environment)
        self.job = job
        return job

    def check(self):
        """All went well with those that are left, to the end."""
        wrong = [failure for failure in self.job.failures() if failure[0] != self.lost]
        left = [self.job.entries("leave")[rank] for rank in self.rest]
        assert not wrong and all(left), f"{self.job}"


@pytest.mark.parametrize("lost", range(NODES))
def test_read_and_go_on_after_a_node_died(site, lost):
    """Each of the nodes in turn: homes of the file and of its blocks are among them."""
    recovery = Recovery(site, lost).kill()
    new = Model(noise("new", SIZE + 1000))
    recovery.script.open("w", comm="part")
    recovery.read().write(new)
    recovery.script.close().open("r", comm="part")
    recovery.read()
    recovery.script.close()
    recovery.run()
    recovery.check()
    assert recovery.content(1) == bytes(recovery.old.content)
    assert recovery.content(2) == bytes(new.content)
    # The next job, on those that are left.
    site.lose(f"n{lost}")
    site.expect(new, [f"n{rank}" for rank in recovery.rest], 2)
