"""A store of several tiers: memory is used first and never runs out, and what is lost with it is had elsewhere."""

import shutil
import time

import pytest

from ctl import FINE, PROBLEMS, dedupctl
from stores import Model, Script, changed, noise, parts, shared_site

MIB = 1 << 20
TWO = ["n0", "n1"]


@pytest.fixture
def site(tmp_path):
    site = shared_site(tmp_path)
    site.fast_limit = "4MiB"
    return site


def write(site, size, seed=1, nodes=2, replication=2, mode="wc"):
    model = Model(noise(seed, size))
    site.write(parts(bytes(model.content), nodes), nodes, nodes, {"replication": replication}, mode=mode)
    return model


def bytes_in(directory):
    return sum(segment.stat().st_size for segment in directory.rglob("*.seg"))


def tiers(site, places=None):
    answer = dedupctl(site, "df", "--json", stores=places and [places])
    assert answer.code == FINE, answer
    return {store["node"]: store["tiers"] for store in answer.json["stores"]}


def test_own_above_and_copies_below(site):
    model = write(site, 4 * MIB)
    for node in TWO:
        assert 2 * MIB <= bytes_in(site.fast / node) < 2.3 * MIB
        assert 2 * MIB <= bytes_in(site.store(node)) < 2.3 * MIB
    site.expect(model, 2, 2)
    site.check_stores(model, 2)
    above, below = tiers(site)["n0"]
    assert above["directory"] == str(site.fast / "n0") and above["limit_bytes"] == 4 * MIB
    assert 2 * MIB <= above["used_bytes"] and above["free_bytes"] <= 2 * MIB and not above["leaving"]
    assert below["directory"] == str(site.store("n0")) and below["limit_bytes"] is None
    answer = dedupctl(site, "df")
    assert "TIER" in answer.out and str(site.fast / "n1") in answer.out and "4.0 MiB" in answer.out, answer


def test_memory_for_half_of_the_data(site, mount_tmpfs):
    for node in TWO:
        mount_tmpfs(site.fast / node, "4m")
    site.fast_limit = "1GiB"
    model = write(site, 12 * MIB)
    for node in TWO:
        assert 2.5 * MIB < bytes_in(site.fast / node) < 4 * MIB
        assert bytes_in(site.store(node)) > 8 * MIB
    site.expect(model, 2, 2)
    new = Model(changed(bytes(model.content), 2, 4096))
    site.write(parts(bytes(new.content), 2), 2, 2, {"replication": 2}, mode="w")
    site.expect(new, 2, 2)
    site.check_stores(new, 2, nothing_else=False)


def test_no_error_while_a_tier_has_room(site, mount_tmpfs):
    mount_tmpfs(site.fast / "n0", "6m")
    mount_tmpfs(site.store("n0"), "6m")
    site.fast_limit = "1GiB"
    model = write(site, 9 * MIB, nodes=1, replication=1)
    assert bytes_in(site.fast / "n0") > 4 * MIB and bytes_in(site.store("n0")) > 3 * MIB
    site.expect(model, 1, 1)
    script = Script().open("w").write("all-at", parts(noise(2, 20 * MIB), 1)).close()
    job = site.run(script, 1, 1, {"replication": 1})
    assert job.errors_of("write") == ["NO_SPACE"], f"{job}"
    site.expect(model, 1, 1)


def test_what_is_elsewhere_goes_before_there_is_an_error(site):
    """Of two tiers with limits: first what is at its path as a plain file, then kept generations."""
    site.fast_limit, site.limit = "9MiB", "9MiB"
    cached = site.root / "cached"

    def job(mode, content, hints, path=None):
        script = Script().open(mode).write("all-at", parts(content, 1)).close()
        return site.run(script, 1, 1, {"replication": 1, **hints}, path=path)

    def names():
        answer = dedupctl(site, "ls", "--generations", "--json")
        assert answer.code == FINE, answer
        return sorted(file["path"].rsplit("/", 1)[1] for file in answer.json["files"])

    plain = noise(1, 5 * MIB)
    job("wc", plain, {"flush": "close", "flushed": "keep"}, cached).check()
    job("wc", noise(2, 4 * MIB), {}).check()
    job("w", noise(3, 4 * MIB), {"keep": 2}).check()
    assert names() == ["cached", "file", "file@1"]
    content = noise(4, 4 * MIB)
    more = site.root / "more"
    job("wc", content, {}, more).check()
    assert names() == ["file", "file@1", "more"]
    assert cached.read_bytes() == plain
    last = noise(5, 5 * MIB)
    job("wc", last, {}, site.root / "last").check()
    assert names() == ["file", "last", "more"]
    # Both tiers are in use, and nothing is left that may go.
    assert bytes_in(site.fast / "n0") > 5 * MIB and bytes_in(site.store("n0")) > 4 * MIB
    errors = job("wc", noise(6, 8 * MIB), {}, site.root / "too much")
    assert "NO_SPACE" in errors.errors_of("write") + errors.errors_of("close"), f"{errors}"
    site.expect(Model(noise(3, 4 * MIB)), 1, 1)
    for path, expected in ((more, content), (site.root / "last", last)):
        answer = dedupctl(site, "cat", path, text=False)
        assert answer.out == expected


@pytest.mark.parametrize("lost", [["n1"], TWO], ids=["one", "all"])
def test_the_memory_tier_is_lost(site, lost):
    """As by a reboot: what had its copies on a disk reads whole, and heals."""
    model = write(site, 4 * MIB)
    for node in lost:
        shutil.rmtree(site.fast / node)
    answer = dedupctl(site, "check")
    assert answer.code == PROBLEMS, answer
    site.expect(model, 2, 2)
    answer = dedupctl(site, "heal", nodes=TWO)
    assert answer.code == FINE, answer
    assert dedupctl(site, "check").code == FINE
    # Then any node may be lost.
    site.lose("n1")
    site.expect(model, ["n0"], 1)


def test_a_commit_brings_back_what_was_lost_with_memory(site):
    model = write(site, 4 * MIB)
    shutil.rmtree(site.fast)
    new = Model(bytes(model.content))
    piece = {0: [(0, noise(3, 5000))]}
    new.write(piece)
    site.write(piece, 2, 2, {"replication": 2}, mode="w")
    site.expect(new, 2, 2)
    site.check_stores(new, 2, nothing_else=False)


def test_a_tier_that_is_too_full_is_emptied_in_part(site):
    """By the job, as far as it got, and then by gc."""
    model = write(site, 7 * MIB)
    answer = dedupctl(site, "gc")
    assert answer.code == FINE, answer
    for node in TWO:
        assert MIB < bytes_in(site.fast / node) <= 0.8 * 4 * MIB
        assert not (site.store(node) / "moving").exists()
    site.expect(model, 2, 2)
    assert dedupctl(site, "check").code == FINE


def test_segments_move_down_while_a_job_runs(site, start):
    """Here all of them, since the store's place does not name the tier any more."""
    model = write(site, 2 * MIB)
    site.fast_limit = None
    read = site.root / "read"
    script = Script().open("r").add("touch", site.root / "open").add("wait", site.root / "go")
    job = start(script.add("read", 0, read, 0).close(), 2, 2, {"replication": 2})
    job.wait_for(site.root / "open")
    for _ in range(6000):  # a guard against hanging
        if bytes_in(site.fast) == 0:
            break
        time.sleep(0.01)
    (site.root / "go").touch()
    job.finish().check()
    assert bytes_in(site.fast) == 0
    assert read.read_bytes() == bytes(model.content)
    site.check_stores(model, 2)


def test_ended_by_a_batch_system_while_segments_move(site, start):
    model = write(site, 12 * MIB)
    site.fast_limit = None
    script = Script().open("r").add("touch", site.root / "open").add("wait", site.root / "never").close()
    job = start(script, 2, 2, {"replication": 2})
    job.wait_for(site.root / "open")
    job.end_as_batch_systems_do()
    site.expect(model, 2, 2)
    answer = dedupctl(site, "gc")
    assert answer.code == FINE, answer
    assert bytes_in(site.fast) == 0
    assert not any((site.store(node) / "moving").exists() for node in TWO)
    site.check_stores(model, 2)


def test_a_tier_comes_and_goes(site):
    site.fast_limit = None
    write(site, MIB)
    site.fast_limit = "4MiB"
    model = write(site, 2 * MIB, seed=2, mode="w")
    assert all(bytes_in(site.fast / node) > 0 for node in TWO)
    site.fast_limit = None
    above, _ = tiers(site)["n0"]
    assert above["leaving"] and above["free_bytes"] == 0
    assert "leaving" in dedupctl(site, "df").out
    answer = dedupctl(site, "gc")
    assert answer.code == FINE and "moved 2.0 MiB to slower tiers" in answer.out, answer
    assert bytes_in(site.fast) == 0
    shutil.rmtree(site.fast)
    site.expect(model, 2, 2)
    assert len(tiers(site)["n0"]) == 1
    assert dedupctl(site, "check").code == FINE


def test_gc_says_what_stays(site, start):
    write(site, MIB)
    site.fast_limit = None
    script = Script().open("w").write("all-at", parts(noise(2, MIB), 2)).add("touch", site.root / "open")
    site.fast_limit = "4MiB"
    job = start(script.add("wait", site.root / "go").close(), 2, 2, {"replication": 2})
    job.wait_for(site.root / "open")
    site.fast_limit = None
    answer = dedupctl(site, "gc")
    assert "in 1 segments stay: no committed generation names them" in answer.out, answer
    assert f"{site.fast / 'n0'}, which dedup_store does not name any more" in answer.out, answer
    (site.root / "go").touch()
    job.finish().check()


def test_a_tier_comes_back_that_was_replaced(site):
    """Nothing that was written meanwhile is hidden by what is in it."""
    write(site, 2 * MIB)
    away = site.root / "away-fast"
    site.fast.rename(away)
    model = write(site, 2 * MIB, seed=2, mode="w")
    again = Model(changed(bytes(model.content), 3, 4096))
    site.write(parts(bytes(again.content), 2), 2, 2, {"replication": 2}, mode="w")
    site.expect(again, 2, 2)
    shutil.rmtree(site.fast)
    away.rename(site.fast)
    site.expect(again, 2, 2)
    answer = dedupctl(site, "heal", nodes=TWO)
    assert answer.code == FINE, answer
    assert dedupctl(site, "check").code == FINE
    site.check_stores(again, 2, nothing_else=False)


def test_dedupctl_takes_the_list(site):
    model = write(site, 2 * MIB)
    places = f"{site.fast}:{site.stores}"
    assert tiers(site, places)["n1"][0]["directory"] == str(site.fast / "n1")
    one = f"{site.fast}/%n=4MiB:{site.stores}/%n"
    assert set(tiers(site, one)) == set(TWO)
    plain = site.root / "plain"
    answer = dedupctl(site, "export", site.path, plain, stores=[places])
    assert answer.code == FINE and plain.read_bytes() == bytes(model.content), answer
    answer = dedupctl(site, "rm", site.path, stores=[places])
    assert answer.code == FINE, answer
    assert bytes_in(site.fast) == 0 and bytes_in(site.stores) == 0


@pytest.mark.parametrize("places, text", [
    ("{stores}/%n:{fast}/%n", "faster tier of the store at"),
    ("{fast}/%n=4Gold:{stores}/%n", "absolute path"),
], ids=["turned", "no size"])
def test_lists_that_cannot_be(site, places, text):
    write(site, 100_000)
    store = places.format(fast=site.fast, stores=site.stores)
    job = site.run(Script().add("info", "dedup_store", store).open("wc").close(), 2, 2)
    assert set(job.errors_of("open")) <= {"ACCESS", "ARG", "OTHER", "INFO_VALUE"}, f"{job}"
    assert all(text in entry.text or text in job.stderr for entry in job.entries("open")), f"{job}"


def test_a_directory_is_not_taken_for_tiers(site):
    """One that was there before colons and equals signs had a meaning."""
    site.fast_limit = None
    odd = site.root / "mem=8MiB"
    odd.mkdir()
    job = site.run(Script().add("info", "dedup_store", odd).open("wc").close(), 1, 1)
    assert job.errors_of("open") == ["ACCESS"] and "write %: and %=" in job.entries("open")[0].text, f"{job}"
    site.stores, kept = odd, site.stores
    job = site.run(Script().open("wc").close(), 1, 1)
    assert job.code != 0 and f"{odd} is there" in job.stderr and "write %: and %=" in job.stderr, f"{job}"
    answer = dedupctl(site, "ls", stores=[odd])
    assert answer.code != FINE and "write %: and %=" in answer.out + answer.err, answer
    site.stores = kept
    assert not list(odd.iterdir()) and not (site.root / "mem").exists()
    # Escaped it is that directory, everywhere.
    content = noise(1, 50_000)
    escaped = str(odd).replace("=", "%=")
    site.places = lambda: escaped
    site.run(Script().open("wc").write("all-at", parts(content, 1)).close(), 1, 1).check()
    assert (odd / "n0" / "STORE").exists()
    answer = dedupctl(site, "export", site.path, site.root / "plain", stores=[escaped])
    assert answer.code == FINE and (site.root / "plain").read_bytes() == content, answer


def test_a_colon_in_a_name(site):
    odd = site.root / "a:b=c"
    store = f"{odd}/%n".replace(":", "%:").replace("=", "%=")
    content = noise(1, 50_000)
    script = Script().add("info", "dedup_store", store).open("wc").write("all-at", parts(content, 2)).close()
    site.run(script, 2, 2).check()
    assert (odd / "n1" / "STORE").exists()
    read = site.root / "read"
    script = Script().add("info", "dedup_store", store).open("r").add("read", 0, read, 0).close()
    site.run(script, 2, 2).check()
    assert read.read_bytes() == content
