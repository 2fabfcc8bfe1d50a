"""Sums what the suites of scripts/test left in a directory, for each suite NAME:

    NAME.check  the exit code of a check, which is a test by itself, and the seconds that it took
    NAME.exit   the same of a suite, whose tests are in
    NAME.xml    as JUnit has it, from GoogleTest or pytest

Prints what failed, what was skipped and why, how long each took, and as the last line "N passed,
N failed, N skipped".
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree

Test = collections.namedtuple("Test", "name outcome reason")


def summary(text):
    """The first two lines; GoogleTest's first one is only a place."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return " ".join(lines[:2])[:200]


def tests_in(path):
    outcomes = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        test = Test(name, "passed", "")
        if case.get("status") == "notrun":  # GoogleTest's word
            test = Test(name, "skipped", "disabled")
        for child in case:
            if child.tag in ("failure", "error"):
                test = Test(name, "failed", summary(child.get("message")))
            elif child.tag == "skipped" and test.outcome == "passed":
                test = Test(name, "skipped", summary(child.get("message")))
        # A test whose teardown fails is there twice.
        if name not in outcomes or test.outcome == "failed":
            outcomes[name] = test
    return outcomes.values()


def suite_tests(directory, name, code):
    """The tests of a suite; one more, which failed, if it did not end as they say."""
    tests = []
    try:
        if (directory / f"{name}.xml").exists():
            tests = list(tests_in(directory / f"{name}.xml"))
    except xml.etree.ElementTree.ParseError as error:
        tests.append(Test(name, "failed", f"its results cannot be read: {error}"))
    failed = any(test.outcome == "failed" for test in tests)
    if not tests:
        tests.append(Test(name, "failed", f"no test was run (exit code {code})"))
    elif code != 0 and not failed:
        tests.append(Test(name, "failed", f"exit code {code} although no test failed"))
    return tests


def main(directory):
    total = collections.Counter()
    for path in sorted(directory.glob("*.*"), key=lambda p: (p.stat().st_mtime_ns, p.name)):
        if path.suffix not in (".check", ".exit"):
            continue
        code, seconds = map(int, path.read_text().split())
        if path.suffix == ".check":
            tests = [Test(path.stem, "failed" if code else "passed", f"exit code {code}")]
        else:
            tests = suite_tests(directory, path.stem, code)
        counts = collections.Counter(test.outcome for test in tests)
        total += counts
        print(f"{path.stem}: {counts['passed']} passed, {counts['failed']} failed, "
              f"{counts['skipped']} skipped in {seconds} s")
        for test in tests:
            if test.outcome != "passed":
                print(f"  {test.outcome}: {test.name}: {test.reason}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
