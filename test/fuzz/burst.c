/* Several accesses of each rank, with explicit offsets, without any synchronisation between ranks.
 * Each rank has bytes of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "compare.h"
#include "files.h"
#include "memory.h"
#include "transfer.h"
#include "view.h"

enum { kMostAccesses = 6 };

struct part {
  struct memory memory;
  struct transfer call;
  long long sure; /* bytes that are there to be read, whatever other ranks write meanwhile */
  struct outcome outcome[kDrivers];
  unsigned char* data[kDrivers];
};

static long long byte_behind(const struct slot* slot, const struct part* part) {
  if (part->memory.bytes == 0) return 0;
  return place_of(&slot->view, part->call.offset * slot->etype + part->memory.bytes - 1) + 1;
}

static void draw_part(const struct op* op, const struct slot* slot, int i, long long base,
                      long long room, struct random* r, struct part* part) {
  const long long unit = slot->etype, at = room > 0 ? pick(r, room) : 0;
  const long long bytes = room > 0 ? pick(r, (room - at) * unit + 1) : 0;
  const int write = !(slot->amode & MPI_MODE_RDONLY) && !one_in(r, 3);
  part->memory = make_memory(op, 100 + (uint64_t)i, rank, bytes, unit, write, 0);
  part->call = (struct transfer){.write = write,
                                 .pointer = kExplicit,
                                 .mode = one_in(r, 3) ? kNonblocking : kBlocking,
                                 .offset = base + at,
                                 .type = part->memory.type};
  if (byte_behind(slot, part) >= kMostFile) set_count(&part->memory, 0);
  part->call.count = part->memory.count;
}

static void compare_part(const struct part* part) {
  const int codes[kDrivers] = {part->outcome[kFirst].code, part->outcome[kSecond].code};
  if (!same_class(codes, part->call.write ? "write" : "read")) return;
  const int bytes = part->outcome[kSecond].bytes;
  if (part->call.write ? bytes != part->memory.bytes
                       : (exact && bytes < part->sure) || bytes > part->memory.bytes) {
    DIFFERS("%s: the status says %d of %lld bytes; %lld are there", driver_name[kSecond], bytes,
            part->memory.bytes, part->sure);
  }
  if (part->call.write) return;
  for (long long i = 0; i < part->sure; ++i) {
    if (part->data[kFirst][i] == part->data[kSecond][i]) continue;
    DIFFERS("byte %lld of %lld read from etype %lld on is %d with %s, %d with %s", i,
            part->memory.bytes, (long long)part->call.offset, part->data[kFirst][i],
            driver_name[kFirst], part->data[kSecond][i], driver_name[kSecond]);
  }
}

void run_burst(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  struct part parts[kMostAccesses];
  int count = 0;
  if (!slot->in_use) return;
  if (is_open(slot)) {
    struct random own = random_from(op->seed, 11000 + (uint64_t)rank);
    const long long room = op->bytes / slot->etype;
    const long long base = etype_at(slot, op->offset) + (slot->tiled ? 0 : rank * room);
    long long size = size_of_file(slot, kFirst);
    count = 1 + (int)pick(&own, kMostAccesses);
    for (int i = 0; i < count; ++i) {
      struct part* part = &parts[i];
      *part = (struct part){.sure = 0};
      draw_part(op, slot, i, base, room, &own, part);
      if (part->call.write && byte_behind(slot, part) > size) size = byte_behind(slot, part);
      part->sure =
          bytes_before(&slot->view, part->call.offset * slot->etype, part->memory.bytes, size);
    }
  }
  for (int d = 0; d < kDrivers; ++d) {
    barrier();
    for (int i = 0; i < count; ++i) {
      reset(&parts[i].memory);
      parts[i].outcome[d] = transfer(slot->file[d], &parts[i].call, parts[i].memory.buffer);
      if (!parts[i].call.write) parts[i].data[d] = data_of(&parts[i].memory, d);
    }
  }
  for (int i = 0; i < count; ++i) {
    compare_part(&parts[i]);
    for (int d = 0; d < kDrivers; ++d) free(parts[i].data[d]);
    free_memory(&parts[i].memory);
  }
}
