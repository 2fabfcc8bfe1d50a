"""The recipes for Spack, EasyBuild and containers, as far as this source knows what must be in them.

Neither Spack nor EasyBuild is there. Each recipe is loaded with a stand-in of what it uses, which takes no
more than is documented, and what it says is compared with the source. Whether it builds is not seen here:
site/spack/README.md, site/easybuild/README.md and doc/container.md say what was tried by hand.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import types

import pytest

import form
from conftest import BUILD, only_dedup, run_guarded

pytestmark = [only_dedup, pytest.mark.skipif(form.PREFIX is not None, reason="the driver is inside of MPICH")]

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURE = (ROOT / "configure.ac").read_text(encoding="utf-8")
SHA256 = re.compile("[0-9a-f]{64}")


def needed_libraries():
    """What configure looks for with pkg-config, and from which version on."""
    found = re.findall(r"DEDUP_LIBRARY\(\[\w+\], \[[^\]]*\], \[(\S+) >= ([0-9.]+)\]", CONFIGURE)
    assert len(found) >= 7
    return dict(found)


def check_configure_words(words):
    """Options that configure does not know are only a warning to it."""
    known = run_guarded([ROOT / "configure", "--help"], None).stdout
    for word in words:
        option = re.fullmatch(r"--with(?:out)?-([a-z-]+)(=.*)?", word)
        if option:
            assert re.search(rf"--with(out)?-{option[1]}\b", known), word
        else:
            assert re.fullmatch(r"MPICC=/.*/bin/mpicc", word), word


def mpich_versions_tried():
    rows = re.findall(r"^\| ([45]\.[0-9.]+)[,  ].*\| beside \|", (ROOT / "doc" / "mpich.md").read_text(encoding="utf-8"),
                      re.MULTILINE)
    assert "4.0.2" in rows
    return set(rows)


# ---- Spack -----------------------------------------------------------------------------------------

PACKAGE = ROOT / "site" / "spack" / "spack_repo" / "dedup" / "packages" / "dedup" / "package.py"
# pkg-config's names, and Spack's.
SPACK_NAMES = {"libcrypto": "openssl", "libxxhash": "xxhash", "libzstd": "zstd", "libisal": "isa-l", "fmt": "fmt",
               "nlohmann_json": "nlohmann-json", "CLI11": "cli11", "gtest_main": "googletest"}


class Directives:
    """Spack's directives that a recipe may use, with the arguments that its documents name."""

    def __init__(self):
        self.calls = []

    def _note(self, directive, /, **arguments):
        self.calls.append((directive, arguments))

    def version(self, ver, *, sha256=None, branch=None, url=None, git=None):
        self._note("version", ver=ver, branch=branch)

    def variant(self, name, default=None, description="", values=None, multi=None, when=None):
        self._note("variant", name=name, default=default)

    def depends_on(self, spec, when=None, type=("build", "link")):
        assert set([type] if isinstance(type, str) else type) <= {"build", "link", "run", "test"}
        self._note("depends_on", spec=spec, when=when, type=type)

    def resource(self, *, name, url, sha256, placement=None, destination="", when=None):
        self._note("resource", name=name, url=url, sha256=sha256, placement=placement, when=when)

    def license(self, license_identifier, checked_by=None, when=None):
        self._note("license", name=license_identifier)

    def of(self, name):
        return [arguments for called, arguments in self.calls if called == name]


class AutotoolsPackage:
    """What the recipe asks Spack's base class."""

    chosen = {"fuse": True}
    stage = types.SimpleNamespace(source_path="/stage/spack-src")
    spec = {"mpich": types.SimpleNamespace(prefix=types.SimpleNamespace(bin="/spack/mpich/bin"))}

    def with_or_without(self, variant):
        return [f"--with{'' if self.chosen[variant] else 'out'}-{variant}"]


@pytest.fixture
def spack(monkeypatch):
    """The recipe's class, and its directives."""
    directives = Directives()
    api = types.ModuleType("spack.package")
    for name in ("version", "variant", "depends_on", "resource", "license"):
        setattr(api, name, getattr(directives, name))
    api.join_path = lambda *parts: "/".join(parts)
    base = types.ModuleType("spack_repo.builtin.build_systems.autotools")
    base.AutotoolsPackage = AutotoolsPackage
    names = [*("spack_repo spack_repo.builtin spack_repo.builtin.build_systems spack").split()]
    for module in [*map(types.ModuleType, names), api, base]:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    specification = importlib.util.spec_from_file_location("package", PACKAGE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.Dedup, directives


def test_spack_finds_recipe_and_source(spack):
    recipe, directives = spack
    # The places where Spack looks for a recipe of this name: https://spack.readthedocs.io, "Package Repositories".
    repository = PACKAGE.parents[2]
    text = (repository / "repo.yaml").read_text()
    assert re.search(r"^  namespace: (\w+)$", text, re.MULTILINE)[1] == repository.name
    assert re.search(r"^  api: v2\.\d+$", text, re.MULTILINE)
    assert repository.parent.name == "spack_repo" and PACKAGE.parts[-3:] == ("packages", "dedup", "package.py")
    assert recipe.git == f"file://{ROOT}"
    assert directives.of("version") == [{"ver": "main", "branch": "main"}]
    assert directives.of("license") == [{"name": "BSD-3-Clause"}] and "BSD 3-Clause" in (ROOT / "LICENSE").read_text()


def test_spack_has_the_source_of_each_mpich(spack):
    _, directives = spack
    versions = set()
    for resource in directives.of("resource"):
        version = re.fullmatch(r"\^mpich@=([0-9.]+)", resource["when"])[1]
        assert resource["url"] == f"https://www.mpich.org/static/downloads/{version}/mpich-{version}.tar.gz"
        assert resource["placement"] == "mpich" and SHA256.fullmatch(resource["sha256"])
        versions.add(version)
    needed, = [one for one in directives.of("depends_on") if one["spec"].startswith("mpich@")]
    assert set(re.findall(r"=([0-9.]+)", needed["spec"])) == versions == mpich_versions_tried()
    assert "run" in needed["type"]


def test_spack_has_all_libraries(spack):
    _, directives = spack
    specs = {one["spec"] for one in directives.of("depends_on")}
    for module, version in needed_libraries().items():
        wanted = re.compile(rf"{SPACK_NAMES[module]}@([0-9.]+):")
        given, = [found[1] for found in map(wanted.fullmatch, specs) if found]
        # "3" and "3.0" are one version.
        assert (given + ".0").startswith(version) or given == version, module
    assert {"c", "cxx", "autoconf", "pkgconfig"} <= specs
    assert [one["when"] for one in directives.of("depends_on") if one["spec"].startswith("libfuse@")] == ["+fuse"]


@pytest.mark.parametrize("fuse", [True, False])
def test_spack_configures(spack, monkeypatch, fuse):
    recipe, _ = spack
    monkeypatch.setattr(AutotoolsPackage, "chosen", {"fuse": fuse})
    words = recipe().configure_args()
    check_configure_words(words)
    assert "--with-mpich-source=/stage/spack-src/mpich" in words
    assert ("--with-fuse" in words) == fuse


# ---- EasyBuild -------------------------------------------------------------------------------------

EASYBUILD_NAMES = {"libcrypto": "OpenSSL", "libxxhash": "xxHash", "libzstd": "zstd", "libisal": "ISA-L", "fmt": "fmt",
                   "nlohmann_json": "nlohmann_json", "CLI11": "CLI11", "gtest_main": "googletest"}
EASYBUILD_PARAMETERS = set("""easyblock name version versionsuffix homepage description toolchain sources checksums
    builddependencies dependencies preconfigopts configopts sanity_check_paths sanity_check_commands moduleclass""".split())

EASYBUILD_CONSTANTS = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz", "SYSTEM": "SYSTEM", "SHLIB_EXT": "so"}


def number(version):
    return [int(part) for part in version.split(".")]


@pytest.fixture
def easybuild():
    """The one file, and what it says."""
    path, = (ROOT / "site" / "easybuild").glob("*.eb")
    recipe = dict(EASYBUILD_CONSTANTS)
    exec(compile(path.read_text(), path, "exec"), recipe)
    return path, recipe


def test_easybuild(easybuild):
    path, recipe = easybuild
    said = {name for name in recipe if not name.startswith(("local_", "__"))}
    assert said - set(EASYBUILD_CONSTANTS) == EASYBUILD_PARAMETERS
    # EasyBuild finds a file by its name.
    assert path.name == "{name}-{version}-{toolchain[name]}-{toolchain[version]}{versionsuffix}.eb".format(**recipe)
    assert f"AC_INIT([{recipe['name']}], [{recipe['version']}])" in CONFIGURE

    given = {name: version for name, version, *_ in recipe["dependencies"] + recipe["builddependencies"]}
    for module, version in needed_libraries().items():
        assert number(given[EASYBUILD_NAMES[module]]) + [0] >= number(version), module
    mpich = recipe["sources"][1]
    assert mpich["filename"] == f"mpich-{given['MPICH']}.tar.gz" and mpich["source_urls"][0].endswith("/" + given["MPICH"])
    assert len(recipe["checksums"]) == len(recipe["sources"]) and SHA256.fullmatch(recipe["checksums"][1])

    places = recipe["configopts"].replace("$EBROOTMPICH", "/mpich") % {"builddir": "/build"}
    check_configure_words(places.split())
    assert f"--with-mpich-source=/build/mpich-{given['MPICH']}" in places.split()


def test_what_recipes_look_for_is_installed(spack, easybuild, make, tmp_path):
    make("install")
    prefix = tmp_path / "prefix"
    paths = easybuild[1]["sanity_check_paths"]
    for name in [*spack[0].sanity_check_is_file, *paths["files"]]:
        assert (prefix / name).is_file(), name
    assert all((prefix / name).is_dir() for name in paths["dirs"])


# ---- Containers ------------------------------------------------------------------------------------


def test_containerfile():
    text = (ROOT / "site" / "container" / "Containerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    assert len(stages) == 2 and all(stage.startswith("docker.io/library/debian:bookworm-slim") for stage in stages)
    control = (ROOT / "debian" / "control").read_text()
    package = re.search(r"^Package: (\S+)$", control, re.MULTILINE)[1]
    assert set(re.findall(r"/([a-z-]+)_\*\.deb", text)) == {package}
    # What is copied into the build is what a clone has.
    kept_out = [line[1:] for line in (ROOT / ".dockerignore").read_text().split()]
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in tracked if any((name + "/").startswith(out + "/") for out in kept_out)]
    assert BUILD.name in kept_out
