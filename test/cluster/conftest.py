"""Fixtures of the tests on a cluster of network namespaces on this machine. Environment:
  DEDUP_BUILD     the build tree (../../build)
  DEDUP_TEST_MPI  the prefix of an MPICH with the driver inside whose ranks talk over sockets:
                  what test/inside/build prints
"""

import itertools

import pytest

import cluster as clusters
import cluster_site

NUMBERS = itertools.count()


def skip_without_cluster():
    reason = clusters.why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def make_cluster(tmp_path):
    """Makes clusters: make_cluster(names). They end with the test."""
    skip_without_cluster()
    made = []

    def make(names, **keywords):
        directory = tmp_path / f"cluster{len(made)}"
        directory.mkdir()
        try:
            made.append(clusters.Cluster(directory, names, **keywords))
        except clusters.Unavailable as error:
            if made:
                raise
            pytest.skip(f"no namespaces for hosts: {error}")
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def with_mpich():
    """Skips a test that runs MPI jobs if the MPICH for it is not there."""
    skip_without_cluster()
    if cluster_site.mpich() is None:
        pytest.skip("no MPICH to run on: set DEDUP_TEST_MPI=$(test/inside/build)")


@pytest.fixture
def make_site(with_mpich, make_cluster):
    """A cluster and a file on it: make_site(names)."""

    def make(names, private=False, **keywords):
        return cluster_site.ClusterSite(make_cluster(names, **keywords), f"site{next(NUMBERS)}",
                                        private)

    return make


@pytest.fixture(scope="module")
def four_hosts(tmp_path_factory):
    """A cluster that several tests use: a host that one of them killed is replaced for the next."""
    skip_without_cluster()
    try:
        made = clusters.Cluster(tmp_path_factory.mktemp("four"), ["h0", "h1", "h2", "h3"])
    except clusters.Unavailable as error:
        pytest.skip(f"no namespaces for hosts: {error}")
    with made:
        yield made


@pytest.fixture
def site(with_mpich, four_hosts):
    for name in four_hosts.hosts:
        if name not in four_hosts.names():
            four_hosts.start(name)
    made = cluster_site.ClusterSite(four_hosts, f"site{next(NUMBERS)}")
    yield made
    # Also what hangs.
    for name in four_hosts.names():
        if not four_hosts.hosts[name].first.is_alive() or four_hosts.processes(name):
            four_hosts.kill(name)
    made.clear()
