"""Jobs that Slurm's srun starts, without dedup-mpiexec: all it takes is an environment."""

import pytest

import mounts
import slurm
from ctl import FINE, dedupctl
import form
from form import PREFIX, TEST_BUILD
from stores import Model, Script, Site, is_placeholder, noise

RANKS = 4
NODES = ["a", "b"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if PREFIX:
        pytest.skip("what is preloaded is tested")
    reason = slurm.why_not()
    if reason is not None:
        pytest.skip(reason)
    one = slurm.Slurm(tmp_path_factory.mktemp("slurm"), NODES, RANKS)
    yield one
    one.close()


class SlurmSite(Site):
    """Its jobs are srun's. simulated: the nodes are those of DEDUP_NODES; else they have the names
    that Slurm has for them."""

    def __init__(self, root, cluster, simulated):
        super().__init__(root, shared=True)
        self.cluster = cluster
        self.simulated = simulated

    def start(self, script, nodes, ranks, hints=None, environment=None, path=None, wrapper=()):
        libraries = [TEST_BUILD / "lib" / f"lib{name}.so" for name in ("romio-dedup", "dedup-yield", "dedup-mount")]
        # Nodes do not know that they share this host's processors.
        variables = {**self.cluster.environment, **form.environment(), "DEDUP_YIELD": "1",
                     "DEDUP_STORE": f"{self.stores}/%n", "LD_PRELOAD_OF_TASKS": ":".join(map(str, libraries)),
                     **(environment or {})}
        if self.simulated:
            variables["DEDUP_NODES"] = ",".join(nodes)
        return super().start(script, nodes, ranks, hints, variables, path, wrapper)

    def command(self, nodes, ranks, play):
        node = "" if self.simulated else "DEDUP_NODE=$SLURMD_NODENAME "
        # What Debian's MPICH speaks is pmi2. srun itself is no MPI program.
        return ["srun", "--mpi=pmi2", "-N", len(nodes), "-n", ranks, "sh", "-c",
                f'{node}LD_PRELOAD=$LD_PRELOAD_OF_TASKS exec "$@"', "sh", *play]


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "by-name"])
def test_srun(tmp_path, cluster, simulated):
    site = SlurmSite(tmp_path, cluster, simulated)
    pieces = {rank: [(rank * 50_000, noise("same", 20_000) + noise(rank, 30_000))]
              for rank in range(RANKS)}
    model = Model()
    model.write(pieces)
    site.write(pieces, NODES, RANKS, {"replication": 2})
    assert is_placeholder(site.path)
    assert sorted(path.name for path in site.stores.iterdir()) == NODES
    site.expect(model, NODES, 2)
    # Each node has all of it.
    for node in NODES:
        answer = dedupctl(site, "cat", site.path, stores=[site.stores / node], text=False)
        assert answer.code == FINE and answer.out == bytes(model.content), answer


@pytest.mark.skipif(mounts.why_not() is not None, reason=str(mounts.why_not()))
def test_a_mount_for_a_step(tmp_path, cluster):
    """Slurm kills what a step leaves behind; nothing must be left of the mount."""
    site = SlurmSite(tmp_path, cluster, simulated=False)
    directory, expected = tmp_path / "mnt", tmp_path / "expected"
    content = noise("all", 100_000)
    expected.write_bytes(content)
    script = Script().open("wc").write("all-at", {0: [(0, content)]}).close()
    script.add("shell", f"cmp {directory}{site.path} {expected}")
    for job in range(3):
        mount = {"DEDUP_MOUNT": str(directory), "DEDUP_MOUNT_BY": str(TEST_BUILD / "bin" / "dedupctl"),
                 "DEDUP_MOUNT_JOB": f"job {job}"}
        site.run(script, NODES, RANKS, {"replication": 2}, mount).check()
        assert not mounts.is_mounted(directory) and not directory.exists()
