/* libdedup-yield.so, preloaded when there are more ranks than cores: MPICH's waits over UCX spin,
 * so a rank that waits would keep the core from the rank it waits for. This gives the core away
 * whenever UCX had nothing to do.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

unsigned ucp_worker_progress(void* worker);

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*real)(void*);
  unsigned (*function)(void*) = __atomic_load_n(&real, __ATOMIC_RELAXED);
  if (function == NULL) {
    function = (unsigned (*)(void*))dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (function == NULL) return 0;
    __atomic_store_n(&real, function, __ATOMIC_RELAXED);
  }
  const unsigned events = function(worker);
  if (events == 0) sched_yield();
  return events;
}
