"""After healing, as many hosts may be lost as before the loss."""

import pytest

from stores import Model, Script, noise, parts

FIVE = ["h0", "h1", "h2", "h3", "h4"]


@pytest.mark.parametrize("replication, lost, lost_then", [
    (2, ["h1"], ["h4"]),
    (3, ["h0", "h3"], ["h2", "h4"]),
])
def test_as_many_hosts_again(make_site, replication, lost, lost_then):
    site = make_site(FIVE)
    hints = {"replication": replication}
    model = Model(noise(replication, 300_000) * 2 + noise("once", 1_500_000))
    site.write(parts(bytes(model.content), 7), FIVE, 7, hints)
    for host in lost:
        site.cluster.kill(host)
    left = [host for host in FIVE if host not in lost]

    job = site.run(Script().add("heal", 0, 0), left, 4)
    assert job.code == 0 and job.errors_of("heal") == ["SUCCESS"] * 4, f"{job}"
    assert "lost 0" in job.entries("heal")[0].text and "made 0" not in job.entries("heal")[0].text
    site.check_stores(model, replication, *left, nothing_else=False)

    for host in lost_then:
        site.cluster.kill(host)
    site.expect(model, [host for host in left if host not in lost_then], 3)
