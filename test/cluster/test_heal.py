"""After healing, as many hosts may be lost as before the loss."""

import json

import pytest

from stores import BUILD, Model, noise, parts

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

    words = [BUILD / "bin" / "dedupctl", "heal", "--json"]
    job = site.start_program(words, left, 4, {}).finish()
    assert job.code == 0, f"{job}"
    (file,) = json.loads(job.stdout)["files"]
    assert file["lost_chunks"] == 0 and file["copies_made"] > 0, file
    site.check_stores(model, replication, *left, nothing_else=False)

    for host in lost_then:
        site.cluster.kill(host)
    site.expect(model, [host for host in left if host not in lost_then], 3)
