"""The cluster itself: hosts are apart from each other and from the machine, and nothing of it is
left, however it ends."""

import os
import pathlib
import select
import subprocess
import sys

import pytest

import cluster as clusters
from cluster_site import process_states
from stores import Model, noise, parts

HERE = pathlib.Path(__file__).resolve().parent

# A cluster with a process on each host, of a process that will be killed.
OWNER = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import cluster
made = cluster.Cluster(sys.argv[2], ["a", "b"])
for name in made.names():
    environment = made.environment()
    subprocess.Popen(made.command(["env", *(f"{k}={v}" for k, v in environment.items()),
                                   sys.argv[1] + "/launcher", name, "sleep 1000"]))
while not all(made.processes(name) for name in made.names()):
    pass
pids = [made.first.pid]
for name, host in made.hosts.items():
    pids += [host.first.pid, *made.processes(name)]
print(*pids, flush=True)
sys.stdin.read()
"""


def links():
    return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text()


def test_hosts_are_apart(make_cluster):
    before = links(), mounts()
    cluster = make_cluster(["a", "b"], size="16m")
    own = cluster.own
    for name in ("a", "b"):
        assert cluster.on(name, "hostname").strip() == name
        assert cluster.on(name, f"echo {name} > {own}/mark; echo {name} > /dev/shm/mark") == ""
    for name in ("a", "b"):
        assert cluster.on(name, f"cat {own}/mark /dev/shm/mark").split() == [name] * 2
        assert not (own / "mark").exists()
        processes = cluster.on(name, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "host a " in processes if name == "a" else "host a " not in processes
        assert int(cluster.on(name, f"df --output=size -B1 {own}").split()[-1]) == 16 << 20
    assert (links(), mounts()) == before
    # They reach each other, by name.
    port = "exec 3<>/dev/tcp/{}/9 2>&1"
    for other in ("b", "front-end"):
        refused = cluster.on("a", f"bash -c '{port.format(other)}' 2>&1 || true")
        assert "Connection refused" in refused, refused


def test_two_at_once(make_cluster):
    """They have the same addresses and names, and nothing to do with each other."""
    one, two = make_cluster(["a", "b"]), make_cluster(["a", "b"])
    one.kill("b")
    assert two.on("b", "hostname").strip() == "b"
    one.close()
    assert two.on("a", "hostname").strip() == "a"


def test_a_host_is_killed_and_replaced(make_cluster):
    cluster = make_cluster(["a", "b"])
    process = subprocess.Popen(cluster.command(
        ["env", f"CLUSTER_HOSTS={cluster.environment()['CLUSTER_HOSTS']}", HERE / "launcher", "a",
         f"touch {cluster.own}/mark; sleep 1000"]))
    while not (cluster.root("a") / str(cluster.own)[1:] / "mark").exists():
        assert process.poll() is None
    cluster.kill("a")
    assert process.wait(clusters.PATIENCE) != 0
    assert cluster.names() == ["b"]
    assert "link0" not in cluster.ip("-br link")
    cluster.start("a")
    assert cluster.on("a", f"ls {cluster.own}").split() == ["end", "files", "stores"]


def test_nothing_is_left_when_its_owner_is_killed(tmp_path, make_cluster):
    """Bystanders are not touched: another cluster, with the same names and addresses."""
    other = make_cluster(["a", "b"])
    directory = tmp_path / "killed"
    directory.mkdir()
    owner = subprocess.Popen([sys.executable, "-c", OWNER, HERE, directory], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    handles = []
    try:
        handles = [os.pidfd_open(int(pid)) for pid in owner.stdout.readline().split()]
        assert len(handles) >= 5, "there should be a process on each host"
        owner.kill()
        owner.wait()
        for handle in handles:
            assert select.select([handle], [], [], clusters.PATIENCE)[0], process_states(os.getpid())
    finally:
        owner.kill()
        owner.communicate()
        for handle in handles:
            os.close(handle)
    assert str(directory) not in mounts()
    for name in other.names():
        assert other.on(name, "hostname").strip() == name


def test_a_file_on_hosts(make_site):
    """Nodes are hosts, without being told so; each keeps what is its own in its own store."""
    names = ["a", "b", "c"]
    site = make_site(names)
    model = Model(noise(1, 1_500_000))
    site.write(parts(bytes(model.content), 5), names, 5, {"replication": 2})
    file = site.check_stores(model, 2)
    assert sorted(file["stores"]) == names
    for lost in names:
        assert (site.store(lost) / "files").exists()
    site.expect(model, ["c", "a"], 3)
    site.cluster.kill("b")
    site.expect(model, ["a", "c"], 4)


@pytest.mark.parametrize("how", ["all-at", "at"])
def test_hosts_that_do_not_share_the_files_directory(make_site, how):
    """Nothing stands at the path on any host, and the stores find the file."""
    site = make_site(["a", "b", "c"], private=True)
    model = Model(noise(2, 900_000))
    site.write(parts(bytes(model.content), 3), ["a", "b", "c"], 3, {"replication": 2}, how=how)
    assert site.cluster.on("a", f"ls {site.path.parent}") == ""
    site.cluster.kill("a")
    site.expect(model, ["b", "c"], 3)
    change = {0: [(5, noise(3, 1000))]}
    model.write(change)
    site.write(change, ["b", "c"], 2, {"replication": 2}, mode="w")
    site.check_stores(model, 2)
