"""Random datatypes and views against a model. ROMIO's own drivers fail it: see adio/README.md."""

import pytest

from conftest import only_dedup


@only_dedup
@pytest.mark.parametrize("ranks, seed", [
    pytest.param(1, 1, marks=pytest.mark.form),
    pytest.param(1, 500, marks=pytest.mark.form),
    (3, 90)])  # a type that aborts an MPICH with the datatype engine "dataloop"
def test_datatypes(mpirun, stores, ranks, seed):
    result = mpirun(ranks, "datatypes", stores.name(), 40, seed, nodes=min(ranks, 2))
    assert "datatypes: ok" in result.stdout
