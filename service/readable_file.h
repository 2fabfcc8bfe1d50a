// What a node's store has of a file, to be read: a file that the job uses, or a generation that is
// held for somebody else.
#pragma once

#include "base/types.h"
#include "service/file_chunks.h"
#include "store/store.h"

namespace dedup::service {

// References, for as long as one request takes.
struct ReadableFile {
  store::Store& store;
  const Id128& identity;  // as the store knows it
  FileChunks& chunks;
};

}  // namespace dedup::service
