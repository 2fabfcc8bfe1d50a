"""DEDUP_NODES: ranks find out by themselves which simulated node they are on, whoever starts them.

Here MPICH's mpiexec does, and nobody: dedup-mpiexec only sets the environment (test_mpiexec.py). Which
rank is on which node is in the unit tests of hints/node.h, too.
"""

import json

import pytest

import form
from conftest import clean_environment, only_dedup, run_guarded
from form import TEST_BUILD
from stores import Model, Script, Site, noise

pytestmark = [only_dedup, pytest.mark.form]

PRELOAD = {} if form.PREFIX else {"LD_PRELOAD": str(TEST_BUILD / "lib" / "libromio-dedup.so")}
PIECE = 200_000


def variables(nodes, stores):
    return {**PRELOAD, "DEDUP_NODES": str(nodes), "DEDUP_STORE": f"{stores}/%n"}


def by_hand(nodes, stores, *words):
    """mpiexec as a user would write it."""
    command = [form.command("mpiexec")]
    for name, value in variables(nodes, stores).items():
        command += ["-genv", name, value]
    return [str(word) for word in [*command, *words]]


class ByHand(Site):
    """Its jobs are started by mpiexec itself, with a section for each rank."""

    def command(self, nodes, ranks, play):
        if isinstance(nodes, list):
            nodes = ",".join(nodes)
        words = [word for _ in range(ranks) for word in (":", "-n", 1, *play)][1:]
        return by_hand(nodes, self.stores, *words)


@pytest.fixture
def site(tmp_path):
    return ByHand(tmp_path, shared=True)


def write(site, nodes, ranks, replication=1):
    """Bytes that do not deduplicate, as many from each rank."""
    model = Model()
    pieces = {rank: [(rank * PIECE, noise(rank, PIECE))] for rank in range(ranks)}
    model.write(pieces)
    script = Script().open("wc").write("all-at", pieces).close()
    job = site.run(script, nodes, ranks, {"replication": replication})
    assert job.code == 0, job
    return model


def pieces_on(site):
    """How many ranks' pieces are in each node's store, as one copy of each is kept."""
    return {node: round(site.bytes_used(node) / PIECE) for node in site.node_names()}


def test_ranks_find_their_nodes(site):
    model = write(site, 2, 5)
    assert pieces_on(site) == {"n0": 3, "n1": 2}
    site.expect(model, 2, 3)


def test_nodes_with_names(site):
    write(site, ["a", "b", "c"], 7)
    assert pieces_on(site) == {"a": 3, "b": 2, "c": 2}


def test_fewer_ranks_than_nodes(site):
    write(site, 5, 2)
    assert pieces_on(site) == {"n0": 1, "n1": 1}


def test_a_lost_node_is_left_out(site):
    model = write(site, 3, 3, replication=2)
    site.lose("n1")
    site.expect(model, ["n0", "n2"], 4)
    answer = run_guarded(by_hand("n0,n2", site.stores, "-n", 2, TEST_BUILD / "bin" / "dedupctl",
                                 "ls", "--json"), clean_environment())
    assert answer.returncode == 1, answer  # fewer copies than wanted
    assert [store["node"] for store in json.loads(answer.stdout)["stores"]] == ["n0", "n2"], answer


WRITE = ("write", PIECE, "close")


def run_hints(programs, stores, nodes, *options, then=()):
    return run_guarded(by_hand(nodes, stores.directory, *options, programs("hints"), "open",
                               stores.name(), *then), clean_environment())


def test_a_rank_that_is_told_its_node(programs, stores):
    result = run_hints(programs, stores, 2, "-n", 2, "-env", "DEDUP_NODE", "mine", then=WRITE)
    assert result.returncode == 0 and "open 1 MPI_SUCCESS" in result.stdout, result
    assert [path.name for path in stores.directory.iterdir()] == ["mine"]


def test_a_program_without_mpiexec(programs, stores):
    result = run_guarded([programs("hints"), "open", stores.name(), *WRITE],
                         {**clean_environment(), **variables("a,b", stores.directory)})
    assert result.returncode == 0 and "open 0 MPI_SUCCESS" in result.stdout, result
    assert [path.name for path in stores.directory.iterdir()] == ["a"]


@pytest.mark.parametrize("nodes", ["0", "a,,b", "a/b"])
def test_wrong_nodes_are_told_at_once_and_are_an_error(programs, stores, nodes):
    result = run_hints(programs, stores, nodes, "-n", 2)
    told = [line for line in result.stderr.splitlines() if line.startswith("dedup: error:")]
    assert len(told) == 1 and f"DEDUP_NODES={nodes}: " in told[0], result
    for rank in range(2):
        assert f"open {rank} another" in result.stdout and f"DEDUP_NODES={nodes}" in result.stdout
    assert not stores.directory.exists()


def test_a_store_for_all_nodes_is_an_error_that_says_what_to_do(programs, stores):
    one = stores.directory / "one"
    command = [*by_hand(2, stores.directory), "-genv", "DEDUP_STORE", str(one), "-n", "2",
               str(programs("hints")), "open", stores.name()]
    result = run_guarded(command, clean_environment())
    for rank in range(2):
        assert f"open {rank} MPI_ERR_INFO_VALUE" in result.stdout, result
    for text in ("nodes n0 and n1 have one store", "/one: ", "DEDUP_STORE", "%n"):
        assert text in result.stdout, result


def test_wrong_nodes_are_wrong_usage_of_dedupctl(stores):
    result = run_guarded(by_hand("a,,b", stores.directory, "-n", 2, TEST_BUILD / "bin" / "dedupctl",
                                 "ls"), clean_environment())
    assert result.returncode == 2, result
    assert result.stderr.count("dedupctl: error: DEDUP_NODES=a,,b: a name is empty") == 1, result


def test_a_node_is_on_one_host(programs, stores):
    """Two hosts, as MPICH sees them; it deals ranks to them in turn, or in blocks."""
    if form.PREFIX is not None:
        pytest.skip("ch3:sock does not tell which ranks share memory: what counts there is the host")
    two_hosts = ["-hosts", "localhost,127.0.0.1", "-launcher", "fork",
                 "-genv", "MPIR_CVAR_NOLOCAL", "0"]
    result = run_hints(programs, stores, 2, *two_hosts, "-n", 4)
    told = [line for line in result.stderr.splitlines() if line.startswith("dedup: error:")]
    assert len(told) == 1 and "DEDUP_NODES=2: n0 would be on several hosts" in told[0], result
    assert "open 0 another" in result.stdout
    result = run_hints(programs, stores, 2, *two_hosts, "-ppn", 2, "-n", 4, then=WRITE)
    assert result.returncode == 0 and "open 3 MPI_SUCCESS" in result.stdout, result
    assert sorted(path.name for path in stores.directory.iterdir()) == ["n0", "n1"]
