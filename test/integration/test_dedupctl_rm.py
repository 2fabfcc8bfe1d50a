"""dedupctl rm --keep and --older-than: which generations and files go. What is old is a matter of whole days here, or of
no time at all; expiry's unit test has what is between."""

import pytest

from ctl import FINE, IN_USE, NO_FILE, PROBLEMS, USAGE, dedupctl
from stores import Script, Site, changed, noise, parts, shared_site

NODES = ["n0", "n1", "n2"]
CHUNK = 4096
SIZE = 120 * CHUNK
HINTS = {"replication": 2, "chunk_size": CHUNK, "keep": 9}


@pytest.fixture(name="site", params=["shared", "private"])
def fixture_site(request, tmp_path):
    return shared_site(tmp_path) if request.param == "shared" else Site(tmp_path)


def write(site, generations, name="file"):
    """Generations of a file, each of which has a tenth that is new. The content of each."""
    site.path = site.path.with_name(name)
    contents = [noise(name, SIZE)]
    for number in range(1, generations):
        contents.append(changed(contents[-1], f"{name} {number}", CHUNK))
    for content in contents:
        site.write(parts(content, 3), NODES, 3, HINTS)
    return contents


def generations(site, path=None):
    return [file["generation"] for file in
            dedupctl(site, "--json", "ls", "--generations", path or site.path).json["files"]]


def names(site):
    return sorted(file["path"] for file in dedupctl(site, "--json", "ls", "--generations").json["files"])


def test_keep(site, where):
    contents = write(site, 5)
    answer = dedupctl(site, "--json", "rm", "--keep", 2, site.path, nodes=where(NODES))
    assert answer.code == FINE, answer
    assert [file["path"] for file in answer.json["files"]] == [f"{site.path}@1", f"{site.path}@2"]
    assert generations(site) == [5, 4, 3]
    assert dedupctl(site, "rm", "--keep", 2, site.path, nodes=where(NODES)).code == FINE
    assert generations(site) == [5, 4, 3]
    assert dedupctl(site, "cat", f"{site.path}@3", text=False).out == contents[2]
    assert dedupctl(site, "rm", "--keep", 0, site.path).code == FINE
    assert generations(site) == [5]
    assert dedupctl(site, "cat", site.path, text=False).out == contents[4]
    assert dedupctl(site, "check").code == FINE


def test_older_than_removes_files(site, where):
    write(site, 2)
    answer = dedupctl(site, "rm", "--older-than", "10000d", site.path, nodes=where(NODES))
    assert answer.code == FINE and generations(site) == [2, 1], answer
    answer = dedupctl(site, "--json", "rm", "--older-than", "0s", site.path, nodes=where(NODES))
    assert answer.code == FINE and [file["path"] for file in answer.json["files"]] == [str(site.path)], answer
    assert not site.path.exists() and names(site) == []
    assert not list(site.stores.glob("*/files/*"))


def test_an_older_generation_by_its_name(site):
    write(site, 3)
    assert dedupctl(site, "rm", "--older-than", "0s", f"{site.path}@1").code == FINE
    assert generations(site) == [3, 2]


def test_what_is_too_many_and_too_old(site):
    write(site, 4)
    assert dedupctl(site, "rm", "--keep", 1, "--older-than", "10000d", site.path).code == FINE
    assert generations(site) == [4, 3, 2, 1]
    assert dedupctl(site, "rm", "--keep", 1, "--older-than", "0s", site.path).code == FINE
    assert generations(site) == [4, 3]


def test_of_all_files(site, where):
    write(site, 3, "a")
    write(site, 2, "b")
    assert dedupctl(site, "rm", "--all", "--keep", 1, nodes=where(NODES)).code == FINE
    a, b = site.path.with_name("a"), site.path
    assert names(site) == sorted(map(str, [a, f"{a}@2", b, f"{b}@1"]))
    assert dedupctl(site, "rm", "--all", "--older-than", "0s", nodes=where(NODES)).code == FINE
    assert names(site) == [] and not list(site.stores.glob("*/files/*"))


def test_dry_run(site, where):
    write(site, 3)
    rm = ("rm", "--all", "--dry-run")
    answer = dedupctl(site, *rm, "--keep", 0, nodes=where(NODES))
    assert answer.code == FINE, answer
    assert [line.partition(", committed")[0] for line in answer.out.splitlines()] == \
        [f"would remove {site.path}@1", f"would remove {site.path}@2"]
    answer = dedupctl(site, "--json", *rm, "--older-than", "0s", nodes=where(NODES))
    assert answer.json["dry_run"] and answer.file["path"] == str(site.path)
    assert dedupctl(site, *rm, "--older-than", "10000d").out == ""
    assert generations(site) == [3, 2, 1]


@pytest.mark.parametrize("mode", ["r", "w"])
def test_what_a_job_has_open_is_left_alone(site, start, where, mode):
    write(site, 2, "open")
    opened = site.path
    job = start(Script().open(mode).add("touch", site.root / "open").add("wait", site.root / "go").close(), NODES, 3,
                HINTS)
    job.wait_for(site.root / "open")
    write(site, 2, "other")
    answer = dedupctl(site, "rm", "--all", "--older-than", "0s", nodes=where(NODES))
    assert answer.code == IN_USE and "a job has it open" in answer.err, answer
    assert names(site) == [str(opened), f"{opened}@1"]
    (site.root / "go").touch()
    job.finish().check()


def test_files_that_cannot_be_taken(tmp_path):
    """The others go nevertheless."""
    site = Site(tmp_path)
    write(site, 2, "fine")
    site.path = site.path.with_name("conflict")
    site.write(parts(noise(1, 50_000), 3), NODES + ["n3"], 3, {"replication": 4})
    for nodes in (["n0", "n1"], ["n2", "n3"]):
        site.run(Script().open("w").write("all-at", {0: [(0, nodes[0].encode())]}).close(), nodes, 2,
                 {"replication": 4}).check()
    answer = dedupctl(site, "rm", "--all", "--older-than", "0s")
    assert answer.code == PROBLEMS and "neither was made from the other" in answer.err, answer
    assert names(site) == [str(site.path)]
    answer = dedupctl(site, "rm", "--keep", 1, site.path.with_name("fine"))
    assert answer.code == NO_FILE, answer


@pytest.mark.parametrize("arguments, text", [
    (["--older-than", "7", "f"], "s, m, h or d"),
    (["--older-than", "7w", "f"], "s, m, h or d"),
    (["--keep", "-1", "f"], "--keep"),
    (["--keep", "1"], "--all"),
    (["--keep", "1", "--all", "f"], "--all"),
    (["--all"], "--keep or --older-than"),
    (["--dry-run", "f"], "--keep or --older-than"),
    (["--keep", "1", "--generation", "2", "f"], "--generation"),
    (["--older-than", "1d", "--on", "n0", "f"], "--on"),
    ([], "rm takes files"),
])
def test_arguments_that_do_not_go_together(tmp_path, arguments, text):
    site = Site(tmp_path)
    site.stores.mkdir()
    answer = dedupctl(site, "rm", *arguments)
    assert answer.code == USAGE and text in answer.err and not answer.out, answer
