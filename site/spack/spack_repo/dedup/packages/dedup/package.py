"""Builds dedup: with Spack 1.0 or newer, from the clone that this file is in (site/spack/README.md)."""

import pathlib

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *

CLONE = pathlib.Path(__file__).resolve().parents[6]


class Dedup(AutotoolsPackage):
    """MPI-IO driver for MPICH that keeps files on node-local storage, deduplicated and replicated."""

    homepage = f"file://{CLONE}/README.md"
    # Where this file is copied to another repository of recipes, the address of one with the source.
    git = f"file://{CLONE}"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("fuse", default=True, description="Build dedupctl with its command mount")

    # The driver is ROMIO from the source of the very MPICH that programs run with.
    for mpich, checksum in (
        ("4.0.2", "5a42f1a889d4a2d996c26e48cbf9c595cbf4316c6814f7c181e3320d21dedd42"),
        ("4.2.1", "23331b2299f287c3419727edc2df8922d7e7abbb9fd0ac74e03b9966f9ad42d7"),
        ("5.0.1", "8c1832a13ddacf071685069f5fadfd1f2877a29e1a628652892c65211b1f3327"),
    ):
        resource(
            name="mpich",
            url=f"https://www.mpich.org/static/downloads/{mpich}/mpich-{mpich}.tar.gz",
            sha256=checksum,
            placement="mpich",
            when=f"^mpich@={mpich}",
        )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool@2.4:", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2:", type="build")
    depends_on("googletest@1.12:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")

    depends_on("mpich@=4.0.2,=4.2.1,=5.0.1 +romio", type=("build", "link", "run"))
    depends_on("fmt@9:")
    depends_on("isa-l@2.30:")
    depends_on("libfuse@3.10:", when="+fuse")
    depends_on("openssl@3:")
    depends_on("xxhash@0.8:")
    depends_on("zstd@1.4:")

    build_directory = "spack-build"
    sanity_check_is_file = ["bin/dedup-mpiexec", "bin/dedup-run", "bin/dedupctl", "lib/libromio-dedup.so"]

    def configure_args(self):
        return [
            f"--with-mpich-source={join_path(self.stage.source_path, 'mpich')}",
            f"MPICC={join_path(self.spec['mpich'].prefix.bin, 'mpicc')}",
            # Spack has no recipe of it; OpenSSL does the same, in two to three times the time.
            "--without-ipsec-mb",
            *self.with_or_without("fuse"),
        ]
