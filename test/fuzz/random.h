/* Random numbers that are the same on all ranks and on every machine. */
#pragma once

#include <stdint.h>

struct random {
  uint64_t state;
};

static inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline struct random random_from(uint64_t a, uint64_t b) {
  return (struct random){mix(a * 0x9e3779b97f4a7c15u + mix(b + 0x632be59bd9b4e019u))};
}

static inline uint64_t next_random(struct random* r) {
  r->state += 0x9e3779b97f4a7c15u;
  return mix(r->state);
}

/* From 0 to n - 1. */
static inline long long pick(struct random* r, long long n) {
  return (long long)(next_random(r) % (uint64_t)n);
}

static inline int one_in(struct random* r, int n) {
  return pick(r, n) == 0;
}
