"""libdedup-yield.so: what a rank does that waits, on a clock of the test's own; and who has it do so."""

import os
import shutil
import subprocess

import pytest

import form
from conftest import clean_environment, only_dedup, run_guarded
from form import BUILD, TEST_BUILD

LIBRARY = BUILD / "lib" / "libdedup-yield.so"

# In place of UCX, the clock, and what gives the core away: time passes by calls only.
FAKES = r"""
#include <sched.h>
#include <time.h>
long long now = 1000000000, slept, longest, yields;
unsigned events;
unsigned ucp_worker_progress(void* worker) { (void)worker; now += 500; return events; }
int clock_gettime(clockid_t clock, struct timespec* t) {
  (void)clock;
  t->tv_sec = now / 1000000000;
  t->tv_nsec = now % 1000000000;
  return 0;
}
int sched_yield(void) { now += 2000; ++yields; return 0; }
int nanosleep(const struct timespec* t, struct timespec* left) {
  (void)left;
  const long long time = t->tv_sec * 1000000000LL + t->tv_nsec;
  now += time;
  slept += time;
  if (time > longest) longest = time;
  return 0;
}
"""

# Prints what a wait of so long came to: nanoseconds until the first sleep (-1: none), slept, the
# longest sleep, and yields. `work` passes between calls; every `news`-th call has something to do. With
# `told` the library is told so first.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
extern long long now, slept, longest, yields;
extern unsigned events;
unsigned ucp_worker_progress(void* worker);
__attribute__((weak)) void dedup_yield(int on);
int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  if (argc == 5) dedup_yield(atoi(argv[4]));
  const long long length = atoll(argv[1]), work = atoll(argv[2]), news = atoll(argv[3]);
  const long long begin = now;
  long long first = -1;
  for (long long i = 1; now - begin < length; ++i) {
    events = news != 0 && i % news == 0;
    const long long before = now;
    if (ucp_worker_progress(NULL) != events) return 3;
    if (first < 0 && slept != 0) first = before - begin;
    now += work;
  }
  printf("%lld %lld %lld %lld\n", first, slept, longest, yields);
  return 0;
}
"""


@pytest.fixture(scope="module")
def wait(tmp_path_factory):
    """Waits for so many milliseconds: (first sleep, slept, longest), in nanoseconds, and yields."""
    if not LIBRARY.exists():
        pytest.skip("libdedup-yield.so is for MPICH over UCX: it was not built")
    work = tmp_path_factory.mktemp("yield")
    (work / "fakes.c").write_text(FAKES)
    (work / "program.c").write_text(PROGRAM)
    flags = ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*flags, "-shared", "-fPIC", "fakes.c", "-o", "libfakes.so"], cwd=work,
                   check=True)
    subprocess.run([*flags, "program.c", "-L.", "-lfakes", "-Wl,-rpath,$ORIGIN", "-o", "program"],
                   cwd=work, check=True)

    def run(milliseconds, work_between=0, news=0, told=()):
        result = subprocess.run(
            [work / "program", str(milliseconds * 1_000_000), str(work_between), str(news), *told],
            env={**os.environ, "LD_PRELOAD": str(LIBRARY)}, capture_output=True, text=True,
            timeout=60, check=True)
        return tuple(int(number) for number in result.stdout.split())

    return run


def test_a_short_wait_yields(wait):
    first, slept, _, yields = wait(1)
    assert first == -1 and slept == 0
    assert yields > 300


def test_a_long_wait_sleeps(wait):
    first, slept, longest, _ = wait(100)
    assert 1_000_000 <= first < 1_010_000
    assert slept > 95_000_000
    assert longest == 200_000


def test_a_sleep_is_a_small_part_of_the_wait(wait):
    for milliseconds in (2, 3):
        _, slept, longest, _ = wait(milliseconds)
        assert slept > 0
        assert longest <= milliseconds * 1_000_000 / 16


def test_who_works_between_tests_never_sleeps(wait):
    first, slept, _, yields = wait(50, work_between=6000)
    assert first == -1 and slept == 0 and yields > 0


def test_who_has_something_to_do_never_sleeps(wait):
    first, slept, _, yields = wait(50, news=100)
    assert first == -1 and slept == 0 and yields > 0


def test_who_is_told_not_to_does_neither(wait):
    first, slept, _, yields = wait(50, told=["0"])
    assert first == -1 and slept == 0 and yields == 0
    first, slept, _, yields = wait(50, told=["1"])
    assert slept > 0 and yields > 0


# In place of libdedup-yield.so: notes what it is told, by rank.
TOLD = r"""
#include <stdio.h>
#include <stdlib.h>
void dedup_yield(int on) {
  FILE* file = fopen(getenv("TOLD"), "a");
  if (file == NULL || fprintf(file, "%d\n", on) < 0 || fclose(file) != 0) abort();
}
"""


@pytest.fixture
def told(programs, tmp_path):
    """What each of some ranks is told, on so many cores of those there are."""
    if form.PREFIX is not None:
        pytest.skip("the driver is inside of MPICH: no other library is beside it by default")
    (tmp_path / "told.c").write_text(TOLD)
    library = tmp_path / "told.so"
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "told.c", "-o", library], check=True)

    def run(ranks, cores, *options, **environment):
        there = sorted(os.sched_getaffinity(0))
        if len(there) < cores:
            pytest.skip(f"there are fewer than {cores} cores")
        notes = tmp_path / "notes"
        notes.unlink(missing_ok=True)
        bound = ["taskset", "-c", ",".join(str(core) for core in there[:cores])]
        preload = f"{TEST_BUILD / 'lib' / 'libromio-dedup.so'}:{library}"
        result = run_guarded(
            [*bound, form.command("mpiexec"), "-genv", "LD_PRELOAD", preload, "-genv", "TOLD", notes,
             *options, "-n", ranks, programs("hints")], {**clean_environment(), **environment})
        assert result.returncode == 0, result
        return notes.read_text().split()

    return run


@only_dedup
@pytest.mark.skipif(shutil.which("taskset") is None, reason="there is no taskset")
def test_more_ranks_than_cores_yield(told):
    assert told(1, 1) == ["0"]
    assert told(2, 1) == ["1"] * 2
    assert told(2, 1, DEDUP_YIELD="0") == ["0"] * 2
    assert told(1, 1, DEDUP_YIELD="1") == ["1"]
    assert told(2, 2) == ["0"] * 2
    assert told(3, 2) == ["1"] * 3


@only_dedup
@pytest.mark.skipif(shutil.which("taskset") is None, reason="there is no taskset")
def test_ranks_that_are_bound_to_a_core_each_do_not_yield(told):
    assert told(2, 2, "-bind-to", "hwthread") == ["0"] * 2
