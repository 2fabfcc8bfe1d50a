"""dedupctl report: files' history as a table, JSON, and a page, which a real browser looks at."""

import html.parser
import json
import os
import re
import shutil
import subprocess

import pytest

from ctl import FINE, NO_FILE, NO_STORE, USAGE, dedupctl
from stores import TIMEOUT, changed, noise, parts, shared_site

NODES = ["n0", "n1", "n2"]
CHUNK = 4096
SIZE = 3 * 64 * CHUNK
COMMITS = 4
PICTURES = ["What nodes have of it now", "Bytes of each commit", "What was found to be there already", "Redundancy",
            "Odds of losing data", "Load of ranks", "Time"]
WITHOUT_END = {"meta", "path", "rect", "circle"}  # path, rect and circle end themselves
CHROMIUM, FIREFOX = shutil.which("chromium"), shutil.which("firefox-esr")
WINDOW = "900,2900"


@pytest.fixture(name="site", scope="module")
def fixture_site(tmp_path_factory):
    """A file with some commits, of which each changes less."""
    site = shared_site(tmp_path_factory.mktemp("report"))
    site.report = site.root / "report"
    content = noise(1, SIZE)
    for n in range(COMMITS):
        site.variables = {"DEDUP_REPORT": str(site.report)}
        site.write(parts(content, 3), NODES, 3, mode="w" if n else "wc")
        content = changed(content, n, CHUNK, 4 + 4 * n)
    site.variables = {}
    return site


def page_of(site, *arguments, code=FINE):
    page = site.root / "page.html"
    answer = dedupctl(site, "report", "--html", page, *arguments)
    assert answer.code == code and not answer.out, answer
    return page


class Tags(html.parser.HTMLParser):
    """Each tag has its end."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count, self.texts = [], {}, []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        if tag not in WITHOUT_END:
            assert self.open and self.open.pop() == tag, (self.open, tag)

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def of(self, tag):
        return [text for where, text in self.texts if where == tag and text]


def test_table_and_json(site, where):
    commits = [json.loads(line) for line in site.report.read_text().splitlines()]
    assert len(commits) == COMMITS
    answer = dedupctl(site, "report", "--report", site.report, nodes=where(NODES))
    assert answer.code == FINE, answer
    lines = answer.out.splitlines()
    assert lines[0] == str(site.path) and f"now: generation {COMMITS}" in lines[1] and "any 1 node" in lines[1]
    assert [line.split()[0] for line in lines[3:]] == [str(n + 1) for n in range(COMMITS)]
    answer = dedupctl(site, "--json", "report", "--report", site.report, site.path, nodes=where(NODES))
    file = answer.file
    assert [c["stored_bytes"] for c in file["commits"]] == [c["bytes_stored"]["total"] for c in commits]
    assert file["commits"][0]["saved"] == 0 and file["commits"][1]["saved"] == pytest.approx(0.75)
    assert file["now"]["generation"] == COMMITS and file["now"]["size"] == SIZE
    assert [node["node"] for node in file["now"]["nodes"]] == NODES
    assert sum(node["live_bytes"] for node in file["now"]["nodes"]) >= 2 * SIZE


def test_the_page_is_whole(site):
    text = page_of(site, "--report", site.report).read_text(encoding="utf-8")
    tags = Tags(text)
    assert tags.of("h2") == [str(site.path)] and tags.of("h3") == PICTURES
    assert tags.of("desc") and tags.count["table"] == 1 and tags.count["tr"] == COMMITS + 1
    assert tags.count["rect"] == 2 * len(NODES) + 2
    for missing in ("nan", "inf\"", "http:", "https:", "<script", "src="):
        assert missing not in text.replace("http-equiv", ""), missing


def test_stores_or_the_report_alone(site):
    """Of a file that no store has any more there is its history, and of one without a report what is there."""
    assert Tags(page_of(site).read_text(encoding="utf-8")).of("h3") == PICTURES[:1]
    other = site.root / "other"
    other.write_text(site.report.read_text().replace(str(site.path), "/gone <b> ü"), encoding="utf-8")
    tags = Tags(page_of(site, "--report", other).read_text(encoding="utf-8"))
    assert tags.of("h3") == PICTURES[1:] and "".join(tags.of("h2")) == "/gone <b> ü"


def test_what_is_not_there(site):
    answer = dedupctl(site, "report", site.path.with_name("none"), "--report", site.report)
    assert answer.code == NO_FILE and "none" in answer.err, answer
    assert dedupctl(site, "report", stores=[site.root / "none"]).code == NO_STORE
    answer = dedupctl(site, "report", "--report", site.root / "none")
    assert answer.code != FINE and "none" in answer.err, answer
    answer = dedupctl(site, "report", "--report", site.path)
    assert answer.code != FINE and f"{site.path}:1: is no line of a report" in answer.err, answer
    answer = dedupctl(site, "report", "--html", site.root / "none" / "page")
    assert answer.code not in (FINE, USAGE) and "cannot write" in answer.err, answer


def run_browser(site, command):
    """It keeps nothing outside of the site's directory."""
    environment = {**os.environ, "HOME": str(site.root), "MOZ_HEADLESS": "1"}
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT, check=True, env=environment)


def chromium(site, page, *options):
    return run_browser(site, [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                              "--no-first-run", f"--user-data-dir={site.root / 'chromium'}", "--hide-scrollbars",
                              f"--window-size={WINDOW}", *options, page.as_uri()])


def take_picture(site, browser, page, is_dark, shot):
    if browser == "chromium":
        chromium(site, page, f"--blink-settings=preferredColorScheme={0 if is_dark else 1}", f"--screenshot={shot}")
        return
    profile = site.root / f"firefox{is_dark}"
    profile.mkdir()
    settings = {"layout.css.prefers-color-scheme.content-override": 0 if is_dark else 1,
                "browser.theme.content-theme": 0 if is_dark else 1, "ui.systemUsesDarkTheme": int(is_dark)}
    (profile / "user.js").write_text("".join(f"user_pref('{name}', {value});\n" for name, value in settings.items()))
    run_browser(site, [FIREFOX, "--headless", "--no-remote", "--profile", profile, f"--window-size={WINDOW}",
                       "--screenshot", shot, page.as_uri()])


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at the page with")
def test_in_a_browser_it_is_what_was_written(site):
    """What the browser makes of it has the same pictures in the same places."""
    page = page_of(site, "--report", site.report)
    done = chromium(site, page, "--dump-dom", "--enable-logging=stderr")
    seen, written = Tags(done.stdout.decode()), Tags(page.read_text(encoding="utf-8"))
    assert seen.of("h3") == PICTURES and seen.of("title") == written.of("title")
    for tag in ("svg", "path", "circle", "rect", "text", "td"):
        assert seen.count[tag] == written.count[tag], tag
    assert not re.search(rb":CONSOLE|Refused", done.stderr), done.stderr


@pytest.mark.skipif(not (CHROMIUM or FIREFOX), reason="there is no browser to look at the page with")
@pytest.mark.parametrize("is_dark, paper, colours", [
    (False, "#ffffff", ["#0b5fa5", "#b34700", "#007a5a"]),
    (True, "#14181d", ["#6cb6ff", "#ffab66", "#4fd1a5"]),
], ids=["light", "dark"])
def test_a_browser_shows_it(site, is_dark, paper, colours):
    image = pytest.importorskip("PIL.Image", reason="there is no python3-pil to look at a picture with")
    shot = site.root / f"shot{is_dark}.png"
    take_picture(site, "chromium" if CHROMIUM else "firefox", page_of(site, "--report", site.report), is_dark, shot)
    with image.open(shot) as picture:
        pixels = picture.convert("RGB")
        counts = {"#%02x%02x%02x" % colour: count for count, colour in pixels.getcolors(1 << 24)}
    assert max(counts, key=counts.get) == paper
    assert counts[paper] < 0.99 * pixels.width * pixels.height
    for colour in colours:
        assert counts.get(colour, 0) > 300, (colour, counts.get(colour))
