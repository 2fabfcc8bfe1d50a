"""A node is lost while a job runs: its other ranks open the file again, without being started anew.

The processes of the lost node are really killed. Ranks cannot take each other along into MPI's calls
then, so all that is done after a loss is done on a communicator (`part`) without the lost ones, which
was made before; and the ranks end without MPI_Finalize, which takes all of them.
"""

import pathlib
import subprocess

import pytest

import form
from conftest import clean_environment, only_dedup, run_guarded
from stores import Model, Script, Site, noise, parts

pytestmark = only_dedup

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "survive" / "survive.c"
NODES = 4
SIZE = 1_500_000  # large enough to be dumped at once
HINTS = {"replication": 2, "chunk_size": 4096}
# Of writing: with the node as a partner and a home, and no rank on it.
STEPS = ["dump.hashed", "dump.storing", "dump.stored", "write.dumped", "commit.begin",
         "commit.dumped", "commit.shards", "commit.indexed", "commit.prepared", "commit.renamed",
         "commit.unfenced", "commit.fenced", "commit.installed", "commit.collected",
         "close.committed"]


@pytest.fixture(params=[True, False], ids=["shared", "private"])
def site(tmp_path, request):
    return make_site(tmp_path, request.param)


def make_site(root, shared):
    made = Site(root, shared=shared)
    # The job goes on without its dead; what a signal ended, mpiexec would end with all on its host.
    made.options = ["-disable-auto-cleanup"]
    made.launcher = ["sh", "-c", 'trap "" USR1; "$@"; code=$?; [ $code -eq 137 ] || exit $code', "sh"]
    return made


class Recovery:
    """A job in which nodes die, one after the other: a script that ends with what those do that are
    left (`rest`). Each node has `each` ranks; node n's are n · each and those that follow."""

    def __init__(self, site, each=1):
        self.site = site
        self.each = each
        self.rest = list(range(NODES * each))
        self.old = Model(noise("old", SIZE))
        self.script = Script()
        self.reads = 0
        self.deaths = 0

    def ranks_of(self, node):
        return range(node * self.each, (node + 1) * self.each)

    def nodes(self):
        return [f"n{node}" for node in range(NODES) if self.ranks_of(node)[0] in self.rest]

    def write_old(self):
        self.script.open("wc").write("all-at", parts(bytes(self.old.content), len(self.rest))).close()
        return self

    def split_off(self, node):
        """From here on its ranks only wait for their end."""
        doomed = self.ranks_of(node)
        self.rest = [rank for rank in self.rest if rank not in doomed]
        self.deaths += 1
        for rank in doomed:
            self.script.add(f"@{rank}", "pid", self.pids())
        self.script.add("part", *self.rest)
        for rank in doomed:
            self.script.add(f"@{rank}", "wait", self.site.root / "never")
        self.script.add("meet")  # all the others are through with what took the doomed, too
        return self

    def pids(self):
        return self.site.root / f"doomed{self.deaths}"

    def kill(self):
        """By one of the others, which go on when it has died."""
        killed = self.site.root / f"killed{self.deaths}"
        self.script.add("meet")  # all are through with what they did before
        self.script.add(f"@{self.rest[0]}", "kill", self.pids())
        self.script.add(f"@{self.rest[0]}", "touch", killed)
        for rank in self.rest:
            self.script.add(f"@{rank}", "wait", killed)
        return self

    def open(self, mode, handle=0):
        self.script.open(mode, handle, "part")
        return self

    def write(self, model, handle=0):
        pieces = parts(bytes(model.content), len(self.rest))
        self.script.write("all-at", dict(zip(self.rest, pieces.values())), handle)
        return self

    def sync(self, handle=0):
        self.script.add("sync", handle)
        return self

    def read(self, handle=0):
        self.reads += 1
        self.script.add("read", handle, self.site.root / f"in-job{self.reads}", 0)
        return self

    def close(self, handle=0):
        self.script.close(handle)
        return self

    def mark(self):
        """The number of the next line."""
        return len(self.script.lines) + 1

    def content(self, number):
        return (self.site.root / f"in-job{number}").read_bytes()

    def run(self, environment=None, hints=None):
        for death in range(1, self.deaths + 1):  # who is not dead yet would wait for it
            self.script.add(f"@{self.rest[0]}", "kill", self.site.root / f"doomed{death}")
        self.script.add("leave")
        self.job = self.site.run(self.script, NODES, NODES * self.each, {**HINTS, **(hints or {})},
                                 environment)
        return self

    def failures(self, begin=0, end=10**9):
        """Of those that are left, in these lines; they have come to the end."""
        assert all(self.job.entries("leave")[rank] for rank in self.rest), f"{self.job}"
        return [failure for failure in self.job.failures()
                if failure[0] in self.rest and begin <= failure[1] < end]

    def check(self, begin=0):
        """All went well with those that are left."""
        assert not self.failures(begin), f"{self.job}"
        return self


@pytest.mark.parametrize("node", range(NODES))
def test_read_and_go_on_after_a_node_died(site, node):
    """Each of the nodes in turn: homes of the file and of its blocks are among them."""
    new = Model(noise("new", SIZE + 1000))
    recovery = Recovery(site).write_old().split_off(node).kill()
    recovery.open("w").read().write(new).close().open("r").read().close()
    recovery.run().check()
    assert recovery.content(1) == bytes(recovery.old.content)
    assert recovery.content(2) == bytes(new.content)
    assert f"node n{node} is lost" in recovery.job.stderr
    # The next job, on those that are left.
    site.lose(f"n{node}")
    site.expect(new, recovery.nodes(), 2)
    site.check_stores(new, 2, *recovery.nodes())


@pytest.mark.parametrize("step", STEPS)
def test_a_node_dies_while_the_others_write(tmp_path, step):
    """Whoever was told of an error opens the file again: it is the old generation or the new one."""
    node = STEPS.index(step) % NODES
    shared = STEPS.index(step) // NODES % 2 == 0
    site = make_site(tmp_path, shared)
    new = Model(noise("new", SIZE))
    last = Model(noise("last", SIZE + 5000))
    recovery = Recovery(site).write_old().split_off(node)
    recovery.open("w").write(new).sync().close()
    begin = recovery.mark()
    recovery.open("r").read().close()
    recovery.open("w").write(last).close().open("r").read().close()
    # The old generation took each step once.
    recovery.run({"DEDUP_TEST_KILL": f"{step}:2:{recovery.rest[0]}",
                  "DEDUP_TEST_KILL_PIDS": str(recovery.pids())})
    recovery.check(begin)
    assert f"node n{node} is lost" in recovery.job.stderr, f"{recovery.job}"
    found = recovery.content(1)
    assert found in (bytes(recovery.old.content), bytes(new.content))
    synced = [e.error for rank in recovery.rest for e in recovery.job.results[rank]
              if e.operation == "sync"]
    if "SUCCESS" in synced:
        assert found == bytes(new.content), f"{recovery.job}"
    assert recovery.content(2) == bytes(last.content)
    site.lose(f"n{node}")
    site.expect(last, recovery.nodes(), 2)
    site.check_stores(last, 2, *recovery.nodes())


def test_a_file_that_is_still_open_on_all_ranks(site):
    """It cannot be closed without the lost ones; the others open it anew, and it is whole."""
    new = Model(noise("new", SIZE))
    recovery = Recovery(site).write_old()
    recovery.script.open("w", 1)
    # Uncommitted: lost with the node.
    recovery.script.write("at", {rank: [(rank * 1000, noise(f"lost {rank}", 500))] for rank in range(NODES)}, 1)
    recovery.split_off(2).kill()
    recovery.open("w").read().write(new).close().open("r").read().close()
    recovery.run().check()
    assert recovery.content(1) == bytes(recovery.old.content)
    assert recovery.content(2) == bytes(new.content)


def test_handles_of_before_are_errors(site):
    """Nothing hangs, nothing is lost that was committed, and what to do is said."""
    new = Model(noise("new", SIZE))
    recovery = Recovery(site).write_old().split_off(1)
    recovery.open("w", 1)
    small = {rank: [(rank * 1000, noise(f"small {rank}", 500))] for rank in recovery.rest}
    recovery.script.write("at", small, 1).write("at", small, 1)  # leases
    recovery.kill().open("w").read()
    begin = recovery.mark()
    recovery.script.write("at", small, 1)
    recovery.write(new, 1).read(1).sync(1).close(1)
    end = recovery.mark()
    recovery.write(new).close().open("r").read().close()
    recovery.run()
    failures = recovery.failures(begin, end)
    # The independent write, the collective one, reading, sync and close, on each rank.
    assert len(failures) == 5 * len(recovery.rest), f"{recovery.job}"
    assert all(failure[3] == "IO" for failure in failures), f"{recovery.job}"
    assert any("close it and open it again" in failure[4] for failure in failures), f"{recovery.job}"
    assert recovery.failures() == failures, f"{recovery.job}"
    assert recovery.content(1) == bytes(recovery.old.content)
    assert recovery.content(recovery.reads) == bytes(new.content)


def test_two_nodes_die_one_after_the_other(site):
    """K = 2: there was time to commit in between."""
    first, second = Model(noise("first", SIZE)), Model(noise("second", SIZE))
    recovery = Recovery(site, each=2).write_old()
    recovery.split_off(0).kill().open("w").read().write(first).close()
    recovery.split_off(2).kill().open("w").read().write(second).close()
    recovery.run().check()
    assert recovery.content(1) == bytes(recovery.old.content)
    assert recovery.content(2) == bytes(first.content)
    site.lose("n0", "n2")
    site.expect(second, recovery.nodes(), 3)


def test_the_last_one_goes_on_alone(site):
    recovery = Recovery(site)
    recovery.write_old()
    for node in (1, 3, 0):
        recovery.split_off(node).kill().open("w").read().write(recovery.old).close()
    recovery.open("r").read().close()
    recovery.run().check()
    assert [recovery.content(n) == bytes(recovery.old.content) for n in range(1, 5)] == [True] * 4


def test_only_some_processes_of_a_node_die(site):
    """The one that ran its service: another of its ranks takes over."""
    new = Model(noise("new", SIZE))
    recovery = Recovery(site, each=2).write_old()
    recovery.deaths = 1
    recovery.rest.remove(2)
    recovery.script.add("@2", "pid", recovery.pids()).add("part", *recovery.rest)
    recovery.script.add("@2", "wait", site.root / "never").add("meet")
    recovery.kill().open("w").read().write(new).close()
    recovery.run().check()
    assert recovery.content(1) == bytes(recovery.old.content)
    site.expect(new, NODES, 3)


def test_a_node_that_is_alive_but_left_out(site):
    """Its store is as if it were not there: of what it alone has with the lost one, there is nothing."""
    recovery = Recovery(site)
    script = recovery.script
    recovery.write_old()
    recovery.split_off(3).kill()
    script.add("part", 0, 1).add("meet")
    script.open("r", 0, "part").add("read", 0, site.root / "in-job1", 0).close()
    recovery.run(hints={"replication": 3}).check()
    assert recovery.content(1) == bytes(recovery.old.content)


def test_one_goes_ahead_and_the_others_follow(site):
    """A rank that opens the file by itself begins a job of its own; then all are in one again."""
    new = Model(noise("new", SIZE))
    recovery = Recovery(site).write_old().split_off(3).kill()
    recovery.script.add("@1 open 1 r self").add("@1 close 1")
    recovery.open("w").read().write(new).close()
    recovery.run().check()
    assert recovery.content(1) == bytes(recovery.old.content)
    site.lose("n3")
    site.expect(new, recovery.nodes(), 3)


def test_two_that_go_on_apart_are_two_jobs(tmp_path):
    """Of two that replace the same generation one wins, and the other is told so."""
    site = make_site(tmp_path, shared=True)
    mine = {rank: Model(noise(f"of {rank}", SIZE)) for rank in (0, 2)}
    recovery = Recovery(site).write_old().split_off(1).kill()
    for rank in mine:
        recovery.script.add(f"@{rank} open 1 w self")
    recovery.script.add("meet")
    recovery.script.write("at", {rank: [(0, bytes(model.content))] for rank, model in mine.items()}, 1)
    recovery.script.close(1).add("meet").open("r", 0, "part")
    recovery.read().close().run()
    closed = {rank: next(e.error for e in recovery.job.results[rank]
                         if e.operation == "close" and e.line > 10) for rank in mine}
    assert sorted(closed.values()) == ["IO", "SUCCESS"], f"{recovery.job}"
    winner = next(rank for rank, error in closed.items() if error == "SUCCESS")
    assert recovery.content(1) == bytes(mine[winner].content)


def test_a_stopped_node_is_lost(site):
    """It does not answer, though its connections are there."""
    new = Model(noise("new", SIZE))
    recovery = Recovery(site).write_old().split_off(1)
    recovery.open("r", 1).read(1).close(1)  # connections that are kept
    stopped = site.root / "stopped"
    first = recovery.rest[0]
    recovery.script.add(f"@{first}", "shell", f"kill -STOP $(cat {recovery.pids()})")
    recovery.script.add(f"@{first}", "touch", stopped)
    for rank in recovery.rest:
        recovery.script.add(f"@{rank}", "wait", stopped)
    recovery.open("w").read().write(new).close().open("r").read().close()
    recovery.run({"DEDUP_NODE_TIMEOUT": "2"}).check()
    assert recovery.content(2) == bytes(recovery.old.content)
    assert recovery.content(3) == bytes(new.content)


def test_a_busy_service_is_not_lost(site):
    """Its disk takes longer than a node may give no sign of life."""
    site.variables = {"DEDUP_TEST_PACE": "store=500K", "DEDUP_NODE_TIMEOUT": "1"}
    model = Model(noise("slow", SIZE))
    job = site.write(parts(bytes(model.content), NODES), NODES, NODES, HINTS)
    assert "lost" not in job.stderr
    site.variables = {}
    site.expect(model, NODES, NODES)


def test_the_example(tmp_path):
    """Its result is the same, whoever is lost; on a machine with other rounding it is another one."""
    program = tmp_path / "survive"
    subprocess.run([form.command("mpicc"), "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, EXAMPLE], check=True)
    results = {}
    for lost in ([], [35, 2, 3], [20, 0, 1], [59, 7, 7]):
        site = tmp_path / f"site{len(results)}"
        site.mkdir()
        done = run_guarded([form.TEST_BUILD / "bin" / "dedup-mpiexec", "--nodes", NODES, "--store", site / "stores",
                            "-disable-auto-cleanup", "-n", 2 * NODES, program, f"dedup:{site}/rod", *lost],
                           clean_environment())
        lines = done.stdout.splitlines()
        assert any("go on from step" in line for line in lines) == bool(lost), done
        results[str(lost)] = [line for line in lines if line.startswith("after 60 steps")]
    assert len(set(map(tuple, results.values()))) == 1 and all(results.values()), results
