"""dedup-run in jobs of Slurm, by the files of site/slurm as they are, but for their paths."""

import pathlib
import re
import shutil
import time

import pytest

import form
import slurm
from conftest import only_dedup
from form import BUILD, TEST_BUILD
from stores import is_placeholder

pytestmark = only_dedup

SITE = pathlib.Path(__file__).resolve().parents[2] / "site" / "slurm"
HEAT3D = BUILD / "examples" / "heat3d" / "heat3d"
NODES = ["a", "b", "c", "d"]
TIMEOUT = 120

# All nodes are this host, which the name of a node does not say. The batch script's processes would hand theirs on.
TASK_PROLOG = """#!/bin/sh
echo "export DEDUP_NODE=$SLURMD_NODENAME"
"""

# In the first run the program waits for what is to happen.
PROGRAM = """#!/bin/sh
[ "$DEDUP_RUN" != 1 ] || set -- "$@" --hang-at 15
exec "$@"
"""


def put(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Slurm with the site's files: /local is a directory for each node."""
    if form.PREFIX:
        pytest.skip("what is preloaded is tested")
    reason = slurm.why_not()
    if reason is not None:
        pytest.skip(reason)
    if not HEAT3D.exists():
        pytest.skip("heat3d was not built: HDF5 for MPICH is missing")
    root = tmp_path_factory.mktemp("slurm")
    for name in ("prolog", "epilog"):
        put(root / name, (SITE / name).read_text().replace("/local/", f"{root}/local/$SLURMD_NODENAME/"))
    put(root / "job.sh", (SITE / "job.sh").read_text().replace("/local/", f"{root}/local/%n/").replace(
        "exec dedup-run", "unset DEDUP_NODE\nexec dedup-run"))
    put(root / "task-prolog", TASK_PROLOG)
    put(root / "program", PROGRAM)
    more = f"SchedulerParameters=sched_interval=1\nProlog={root}/prolog\nEpilog={root}/epilog\nTaskProlog={root}/task-prolog"
    made = slurm.Slurm(root, NODES, 1, more)
    # Each rank is alone on its node, which shares two processors with all others.
    made.environment.update(form.environment(), DEDUP_YIELD="1")
    made.environment["PATH"] = f"{TEST_BUILD}/bin:{made.environment['PATH']}"
    yield made
    made.close()


class BatchJob:
    def __init__(self, cluster, directory, nodes, *options):
        self.cluster = cluster
        self.directory = directory
        self.path = directory / "ckpt"
        program = [cluster.root / "program", HEAT3D, "--size", 12, "--steps", 30, "--checkpoint", f"dedup:{self.path}",
                   "--checkpoint-every", 10, "--result", directory / "result"]
        self.id = cluster.run("sbatch", "--parsable", "--nodes", nodes, "--output", directory / "output",
                              cluster.root / "job.sh", *options, *program, cwd=directory).strip()

    def output(self):
        path = self.directory / "output"
        return path.read_text() if path.exists() else ""

    def state(self):
        """Of the job, as long as Slurm has not forgotten it."""
        return self.cluster.run("squeue", "--noheader", "--states=all", "--job", self.id, "--format=%T").strip()

    def wait_until(self, true):
        end = time.monotonic() + TIMEOUT
        while not true():
            assert time.monotonic() < end, f"{self.state()}\n{self.output()}"
            time.sleep(0.05)

    def wait_for(self, text):
        self.wait_until(lambda: text in self.output() or self.state() in ("COMPLETED", "FAILED"))
        assert text in self.output(), self.output()

    def stores(self):
        return sorted(path.parents[1].name for path in self.cluster.root.glob(f"local/*/dedup/{self.id}"))


    def end(self):
        """Whatever has become of it, so that nothing of it outlives its Slurm."""
        if self.state() in ("PENDING", "RUNNING"):
            self.cluster.run("scancel", self.id)
        self.wait_until(lambda: self.state() not in ("PENDING", "RUNNING", "COMPLETING"))


@pytest.fixture
def submit(cluster, tmp_path):
    jobs = []

    def submit_it(*arguments):
        jobs.append(BatchJob(cluster, tmp_path, *arguments))
        return jobs[-1]

    yield submit_it
    for job in jobs:
        job.end()


@pytest.fixture(scope="module")
def undisturbed(cluster):
    path = cluster.root / "undisturbed"
    cluster.run("srun", "--mpi=pmi2", "-n", 1, HEAT3D, "--size", 12, "--steps", 30, "--result", path)
    return path.read_bytes()


def test_before_its_limit_a_job_saves_its_files(cluster, submit):
    job = submit(2, "--grace", 1)
    job.wait_for("waiting to be killed")
    assert is_placeholder(job.path) and job.stores() == ["a", "b"]
    # As Slurm does so many seconds before. MPICH catches it in the ranks, and this program does not call MPI any more.
    cluster.run("scancel", "--batch", "--signal=USR1", job.id)
    job.wait_until(lambda: job.state() == "FAILED")
    # Told to end all ranks, mpiexec ends with 0, or with what the first of them ended with.
    ends = "(was ended by SIGTERM|ended with exit code 15, after SIGUSR1: not started again)"
    assert re.search(f"run 1 {ends}\n", job.output()), job.output()
    assert not is_placeholder(job.path) and job.path.stat().st_size > 12**3 * 8 * 4, job.output()
    # The epilog has removed what nobody needs any more.
    job.wait_until(lambda: job.stores() == [])


def test_a_node_is_killed(cluster, submit, tmp_path, undisturbed):
    """Its place is taken by the spare, and the result is that of a job that nothing happened to. The last test: the
    node is gone."""
    job = submit(4, "--spares", 1, "--restart-argument=--restart", "--restart-file", tmp_path / "ckpt")
    job.wait_for("waiting to be killed")
    cluster.kill("b")
    shutil.rmtree(cluster.root / "local" / "b" / "dedup" / job.id)
    job.wait_until(lambda: job.state() in ("COMPLETED", "FAILED"))
    assert job.state() == "COMPLETED", job.output()
    assert "lost: b\n" in job.output() and "run 2 on a, d, c\n" in job.output()
    assert "step 10: checkpoint read\n" in job.output()
    assert (tmp_path / "result").read_bytes() == undisturbed
    assert not is_placeholder(job.path)
    job.wait_until(lambda: job.stores() == [])
