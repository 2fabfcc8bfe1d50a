"""Parts of the engine that talk, without files: C++ programs over the engine."""

import pytest

from conftest import only_dedup


@only_dedup
@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.long),
                                   pytest.param(5, marks=pytest.mark.long)])
def test_rounds(mpirun, build, ranks):
    program = build / "test" / "integration" / "programs" / "rounds_check"
    result = mpirun(ranks, program, timeout=600)
    assert "rounds_check: 50 writes" in result.stdout


@only_dedup
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_twins(mpirun, build, ranks):
    program = build / "test" / "integration" / "programs" / "twins_check"
    result = mpirun(ranks, program)
    assert "twins_check: 200 calls" in result.stdout


@only_dedup
@pytest.mark.parametrize("kind, ranks", [*(("send", n) for n in (1, 2, 3, 5, 8)),
                                         *(("put", n) for n in (1, 2, 3, 5))])
def test_exchange(mpirun, build, kind, ranks):
    program = build / "test" / "integration" / "programs" / "exchange_check"
    result = mpirun(ranks, program, kind)
    assert "exchange_check: 60 exchanges" in result.stdout
