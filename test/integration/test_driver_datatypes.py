"""Random datatypes and views against a model. ROMIO's own drivers fail it: see adio/README.md."""

import pytest

from conftest import only_dedup


@only_dedup
@pytest.mark.parametrize("ranks, seed", [(1, 1), (1, 500), (3, 90)])
def test_datatypes(mpirun, stores, ranks, seed):
    result = mpirun(ranks, "datatypes", stores.name(), 40, seed, nodes=min(ranks, 2))
    assert "datatypes: ok" in result.stdout
