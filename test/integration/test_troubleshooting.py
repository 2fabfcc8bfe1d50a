"""doc/troubleshooting.md: every message is one that the software gives, in these words, every command and hint is there."""

import os
import pathlib
import re
import subprocess

import form
from conftest import only_dedup

pytestmark = only_dedup

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "doc" / "troubleshooting.md").read_text(encoding="utf-8")
ROOMS = ("base", "hints", "store", "service", "engine", "adio", "hdf5", "tools")
OTHERS = ("iofstypeunsupported",)  # MPICH's


def messages():
    return [line[2:] for line in PAGE.splitlines() if line.startswith("> ")]


def sources():
    """All texts in the sources, those that are cut over several lines put together."""
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.c*")]
    text = "".join(path.read_text(encoding="utf-8") for path in [*paths, *(ROOT / "tools").glob("*.in")])
    return re.sub(r'"\s*"', "", text)


def test_messages_are_the_softwares():
    text = sources()
    assert len(messages()) > 20
    for message in messages():
        parts = [part for part in re.split("…", message) if len(part) > 4]
        assert parts, message
        for part in parts:
            assert part.strip() in OTHERS or part.strip(": ,;()") in text, (message, part)


def test_what_is_to_be_done_can_be_done():
    helps = {}
    for command, option in re.findall(r"`dedupctl ([a-z]+)(?: (--[a-z-]+))?", PAGE):
        if command not in helps:
            helps[command] = subprocess.run([form.TEST_BUILD / "bin" / "dedupctl", command, "--help"], check=True,
                                            capture_output=True, text=True).stdout
        assert option in helps[command]
    hints = (ROOT / "hints" / "table.cc").read_text(encoding="utf-8")
    for hint in re.findall(r"`(dedup_[a-z_]+)", PAGE):
        assert f'"{hint}"' in hints


def test_without_the_driver_mpich_says_so(tmp_path, programs):
    done = subprocess.run(["mpiexec.mpich", "-n", "1", programs("modes"), f"dedup:{tmp_path}/file"], check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "iofstypeunsupported" in done.stdout + done.stderr
    # Whoever has only what is installed finds it in words there.
    words = subprocess.run(["man", "-l", ROOT / "doc" / "man" / "dedup.7"], check=True, capture_output=True, text=True,
                           env={**os.environ, "MANWIDTH": "1000"}).stdout
    assert "iofstypeunsupported" in words and "start it with dedup-mpiexec(1)" in words.replace("\N{HYPHEN}", "-")


def test_links_in_documents_lead_somewhere():
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "doc").glob("*.md")]
    links = [(document, link) for document in documents
             for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))]
    assert len(links) > 50
    for document, link in links:
        assert link.startswith("https:") or (document.parent / link).exists() or link.endswith(".png"), (document, link)
