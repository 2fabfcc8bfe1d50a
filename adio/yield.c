/* libdedup-yield.so, preloaded beside the driver, for hosts with more ranks than cores: MPICH's
 * waits over UCX spin, so a rank that waits would keep the core from the rank it waits for. This
 * gives the core away whenever UCX had nothing to do, until the driver says that there are cores
 * enough (engine/mpi/yield.cc): by yielding at first; to a rank that spins for long the kernel
 * still gives its share of the core, so such a rank sleeps, for a small part of the time that it
 * has waited. A program that works between two tests of a request, for longer than the gap below,
 * does not spin, and never sleeps. A thread may sleep with MPICH's lock, for as long as the longest
 * sleep: others of its process then wait in their calls.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

/* Nanoseconds. */
enum {
  SPIN_GAP = 5000,       /* a program that comes back later than this did something else */
  FIRST_SLEEP = 1000000, /* after having waited so long; a sleep costs at least 0.05 ms */
  LONGEST_SLEEP = 200000,
  PART = 16 /* of the time waited */
};

unsigned ucp_worker_progress(void* worker);

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static _Thread_local long long begin; /* of spinning; 0: something happened meanwhile */
static _Thread_local long long last;  /* when the core was got back */

static void give_core_away(void) {
  const long long start = now();
  if (begin == 0 || start - last > SPIN_GAP) begin = start;
  const long long waited = start - begin;
  if (waited < FIRST_SLEEP) {
    sched_yield();
  } else {
    const long long part = waited / PART;
    const struct timespec sleep = {0, part < LONGEST_SLEEP ? part : LONGEST_SLEEP};
    nanosleep(&sleep, NULL); /* woken early by a signal: goes on waiting */
  }
  last = now();
}

static int yielding = 1;

void dedup_yield(int on);
void dedup_yield(int on) {
  __atomic_store_n(&yielding, on, __ATOMIC_RELAXED);
}

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*real)(void*);
  unsigned (*function)(void*) = __atomic_load_n(&real, __ATOMIC_RELAXED);
  if (function == NULL) {
    function = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (function == NULL) return 0;
    __atomic_store_n(&real, function, __ATOMIC_RELAXED);
  }
  const unsigned events = function(worker);
  if (events == 0 && __atomic_load_n(&yielding, __ATOMIC_RELAXED)) {
    give_core_away();
  } else {
    begin = 0;
  }
  return events;
}
