"""How much is stored and sent for data of known redundancy, and that it reads back.

The figures are those of MPI_File_get_info (dedup_last_…); what is really in the stores is compared
with them.
"""

import itertools

import pytest

from conftest import only_dedup

pytestmark = only_dedup

MEBI = 1 << 20
# With a small threshold few chunks are counted, too, and do not go up a tree all the same.
BY = {"exact": {"DEDUP_REDUCTION": "exact", "DEDUP_THRESHOLD": "1"},
      "tree": {"DEDUP_REDUCTION": "tree"}}


@pytest.fixture
def redundancy(mpirun, stores):
    """Runs programs/redundancy.c; returns the totals of the last commit, by figure."""

    runs = itertools.count()

    def run(kind, size, shift=0, ranks=4, nodes=4, replication=2, **environment):
        environment["DEDUP_REPLICATION"] = replication
        # What is there already is not stored again: each run has its own file, which shares nothing.
        environment["DEDUP_BASE"] = "none"
        result = mpirun(ranks, "redundancy", stores.name(f"file{next(runs)}"), kind, size, shift, nodes=nodes,
                        env=environment)
        pairs = (line.split(" ", 1) for line in result.stdout.splitlines())
        prefix = "dedup_last_total_"
        return {k.removeprefix(prefix): float(v) for k, v in pairs if k.startswith(prefix)}

    return run


@pytest.mark.parametrize("kind", ["same", "same-alone"])
@pytest.mark.parametrize("shift", [0, 1, 333, 4095, 70001])
def test_same_data_at_any_offset_is_stored_k_times(redundancy, kind, shift):
    """Chunks are cut from where a rank's piece starts, not at multiples of their size."""
    size = 256 * 4096
    total = redundancy(kind, size, shift)
    assert total["bytes_written"] == 4 * size
    assert total["bytes_stored"] == 2 * size
    assert total["bytes_sent"] == 0


def test_same_data_with_a_piece_of_a_chunk_at_its_end(redundancy):
    size = 100 * 4096 + 1234
    total = redundancy("same", size, 77)
    assert total["bytes_stored"] == 2 * size
    assert total["bytes_sent"] == 0


@pytest.mark.parametrize("shift", [0, 77])
def test_same_data_in_pieces_of_a_view(redundancy, shift):
    size = 8 * 65536
    total = redundancy("same-pieces", size, shift)
    assert total["bytes_stored"] == 2 * size
    assert total["bytes_sent"] == 0


@pytest.mark.parametrize("reduction", ["exact", "tree"])
@pytest.mark.parametrize("ranks, nodes, replication", [
    (4, 1, 1), (4, 1, 3), (6, 3, 2), (5, 2, 1), (8, 3, 2), (8, 4, 3)])
def test_same_data_on_several_ranks_a_node(redundancy, ranks, nodes, replication, reduction):
    size = 64 * 4096
    total = redundancy("same", size, 99, ranks=ranks, nodes=nodes, replication=replication,
                       **BY[reduction])
    assert total["bytes_stored"] == min(nodes, replication) * size
    assert total["bytes_sent"] == 0


@pytest.mark.parametrize("ranks, nodes, replication, copies", [
    (1, 1, 1, 1), (1, 1, 2, 1), (4, 4, 1, 1), (4, 4, 2, 2), (4, 4, 3, 3), (4, 4, 4, 4), (4, 4, 7, 4),
    (5, 2, 2, 2), (6, 3, 9, 3)])
def test_unique_data_is_stored_exactly_k_times(redundancy, stores, ranks, nodes, replication,
                                               copies):
    size = 100 * 4096 + 5
    total = redundancy("unique", size, ranks=ranks, nodes=nodes, replication=replication)
    assert total["bytes_written"] == total["bytes_unique_local"] == ranks * size
    assert total["bytes_unique_collective"] == ranks * size
    assert total["bytes_stored"] == copies * ranks * size
    assert total["bytes_sent"] == total["bytes_received"] == (copies - 1) * ranks * size
    # The figures are not just words.
    held = [stores.bytes(node) for node in stores.nodes()]
    assert len(held) == nodes
    assert copies * ranks * size <= sum(held) <= 1.2 * copies * ranks * size + nodes * 65536


def test_zeros_are_neither_stored_nor_sent(redundancy, stores):
    total = redundancy("zeros", 4 * MEBI)
    assert total["bytes_written"] == total["bytes_zero"] == 16 * MEBI
    for figure in ("bytes_unique_local", "bytes_unique_collective", "bytes_stored", "bytes_sent",
                   "bytes_received"):
        assert total[figure] == 0
    assert sum(stores.bytes(node) for node in stores.nodes()) < 4 * 65536


@pytest.mark.parametrize("shift", [0, 56])
def test_interleaved_unique_data_is_stored_k_times(redundancy, shift):
    total = redundancy("interleaved", 256 * 4096, shift)
    assert total["bytes_stored"] == 2 * 4 * 256 * 4096


def test_interleaved_data_is_deduplicated_as_the_file_has_it(redundancy):
    """Each rank has every fourth double of a file that is one stretch of 64 KiB, 128 times."""
    total = redundancy("interleaved-repeated", 2 * MEBI)
    assert total["bytes_written"] == 8 * MEBI
    # Each rank's part of the file may start at a place of its own within the stretch.
    assert total["bytes_stored"] <= 2 * 4 * (65536 + 2 * 4096)


def test_modes(redundancy):
    size = 64 * 4096
    total = {mode: redundancy("same", size, 5, DEDUP_MODE=mode)
             for mode in ("collective", "local", "none")}
    assert total["collective"]["bytes_stored"] == 2 * size
    # Without the reduction every node keeps its own data and sends a copy on.
    for mode in ("local", "none"):
        assert total[mode]["bytes_sent"] == 4 * size
        assert total[mode]["bytes_stored"] in (4 * size, 8 * size)
    assert total["none"]["bytes_stored"] == 8 * size


@pytest.mark.parametrize("ranks, nodes", [(6, 3)])
def test_local_mode_finds_what_ranks_of_a_node_share(redundancy, ranks, nodes):
    size = 64 * 4096
    none = redundancy("same", size, 5, ranks=ranks, nodes=nodes, DEDUP_MODE="none")
    local = redundancy("same", size, 5, ranks=ranks, nodes=nodes, DEDUP_MODE="local")
    assert none["bytes_sent"] == 6 * size
    assert local["bytes_sent"] == 3 * size


@pytest.mark.parametrize("exchange", ["put", "send"])
@pytest.mark.parametrize("partners", ["load", "ring"])
def test_hints_do_not_change_what_is_stored(redundancy, exchange, partners):
    total = redundancy("unique", 300_000, 0, ranks=5, nodes=3, DEDUP_EXCHANGE=exchange,
                       DEDUP_PARTNERS=partners)
    assert total["bytes_stored"] == 2 * 5 * 300_000


@pytest.mark.parametrize("chunk_size", ["512", "4096", "1 MiB"])
def test_chunk_sizes(redundancy, chunk_size):
    size = 3 * MEBI + 7
    total = redundancy("same", size, 3, DEDUP_CHUNK_SIZE=chunk_size)
    assert total["bytes_stored"] == 2 * size


@pytest.mark.parametrize("reduction", ["exact", "tree"])
def test_small_threshold_only_costs(redundancy, reduction):
    """What is outside of a tree's result counts as unique: stored more often, never less. Where
    chunks are counted nothing is left out."""
    size = 256 * 4096
    total = redundancy("same", size, 5, DEDUP_THRESHOLD="16", DEDUP_REDUCTION=reduction)
    if reduction == "exact":
        assert total["bytes_stored"] == 2 * size
    else:
        assert 2 * size < total["bytes_stored"] <= 8 * size


@pytest.mark.parametrize("size, nodes, replication", [
    (2 * 4096, 8, 2),   # more nodes than chunks
    (100, 8, 3),        # one, shorter than a chunk
    (0, 3, 2),          # none
    (5 * 4096, 3, 16),  # more copies than nodes
])
def test_few_chunks_are_counted(redundancy, size, nodes, replication):
    total = redundancy("same", size, nodes=nodes, ranks=nodes, replication=replication,
                       **BY["exact"])
    # A file to which nobody wrote has no figures.
    assert total.get("bytes_stored", 0) == min(nodes, replication) * size
    assert total.get("bytes_sent", 0) == 0


@pytest.mark.parametrize("reduction", ["exact", "tree"])
def test_with_stripes_what_many_nodes_have_is_stored_m_plus_1_times(redundancy, reduction):
    """What K nodes have anyway needs no stripe; the parities are beside it, by the commit."""
    size = 64 * 4096
    total = redundancy("same", size, nodes=6, ranks=6, replication=4, DEDUP_REDUNDANCY="rs:3+2",
                       **BY[reduction])
    assert total["bytes_stored"] == 3 * size
    assert total["bytes_sent"] == 0


def test_overwritten_before_a_commit(redundancy):
    size = 64 * 4096
    total = redundancy("overwritten", size)
    assert total["bytes_written"] >= 4 * size


def test_large_data_in_rounds(redundancy):
    """More than a rank's buffer: several rounds must find each other's chunks."""
    size = 12 * MEBI
    total = redundancy("same", size, 3, DEDUP_BUFFER="1 MiB")
    assert total["bytes_stored"] == 2 * size
    total = redundancy("unique", size, 3, DEDUP_BUFFER="1 MiB")
    assert total["bytes_stored"] == 2 * 4 * size
