"""Placeholders that MPI-IO opens and deletes by names without the driver's prefix."""

import pytest

from stores import Model, Script, is_placeholder, names_file, noise, parts, shared_site

pytestmark = pytest.mark.form

HINTS = {"replication": 2}
NODES = RANKS = 3


@pytest.fixture
def site(tmp_path):
    return shared_site(tmp_path)


def write_model(site, size=300_001):
    model = Model(noise(1, size))
    site.write(parts(bytes(model.content), RANKS), NODES, RANKS, HINTS)
    return model


def run(site, script, environment=None):
    return site.run(script, NODES, RANKS, HINTS, environment)


def named(prefix=""):
    return Script().add("prefix", prefix)


def errors(job, operation):
    """Each rank's classes of all its entries of this operation, which are equal on all ranks."""
    found = [[e.error for e in entries if e.operation == operation] for entries in job.results]
    assert all(of_rank == found[0] for of_rank in found), f"{job}"
    return found[0]


def test_a_placeholder_is_read_and_written_without_the_prefix(site):
    model = write_model(site)
    out = site.root / "out"
    pieces = {rank: [(1000 + at, content)] for rank, ((at, content),) in
              parts(noise(2, 50_000), RANKS).items()}
    script = named().open("r").add("read", 0, out, 0).close()
    script.open("w").write("all-at", pieces).close().open("wcx").open("wc").close()
    job = run(site, script)
    assert out.read_bytes() == bytes(model.content)
    assert errors(job, "open") == ["SUCCESS", "SUCCESS", "FILE_EXISTS", "SUCCESS"], f"{job}"
    assert is_placeholder(site.path)
    model.write(pieces)
    site.expect(model, NODES, RANKS)


def test_a_placeholder_is_deleted_without_the_prefix_and_with_it_the_data(site):
    write_model(site)
    job = run(site, named().add("@1 delete"))
    assert job.code == 0 and job.results[1][-1].error == "SUCCESS", f"{job}"
    assert not site.path.exists()
    assert all(not list((site.store(node) / "files").glob("[0-9a-f]" * 32))
               for node in site.node_names())


def test_what_was_on_the_driver_stays_on_it_until_it_is_deleted(site):
    """A name without the prefix at which no placeholder stands is a plain file's, as ever; also
    one that is as long as a placeholder."""
    write_model(site)
    content = noise(3, 4096)
    out = site.root / "out"
    script = named().add("@0 delete").add("barrier").open("wc")
    script.write("all-at", {0: [(0, content)]}).close().open("r").add("read", 0, out, 0).close()
    run(site, script.add("@0 delete")).check()
    assert out.read_bytes() == content and not site.path.exists()

    run(site, named().open("wc").write("all-at", {0: [(0, content)]}).close()).check()
    assert site.path.read_bytes() == content


@pytest.mark.parametrize("how", ["prefix", "forced"])
def test_another_drivers_prefix_is_refused_at_a_placeholder(site, how):
    model = write_model(site)
    placeholder = site.path.read_bytes()
    script = named("ufs:" if how == "prefix" else "").open("r").open("wc").add("delete")
    job = run(site, script, {"ROMIO_FSTYPE_FORCE": "ufs:"} if how == "forced" else {})
    assert errors(job, "open") == ["IO", "IO"], f"{job}"
    assert job.results[0][-1].error == "IO", f"{job}"
    text = job.entries("open")[0].text + job.stderr
    assert names_file(site.path, text) and "placeholder" in text and "dedup:" in text
    assert site.path.read_bytes() == placeholder
    site.expect(model, NODES, RANKS)


@pytest.mark.parametrize("rank, prefix", [(0, ""), (1, ""), (0, "ufs:"), (2, "ufs:")])
def test_ranks_that_name_it_differently_get_an_error(site, rank, prefix):
    model = write_model(site)
    job = run(site, Script().add(f"@{rank} prefix", prefix).open("r"))
    assert errors(job, "open") == ["NOT_SAME"], f"{job}"
    site.expect(model, NODES, RANKS)
