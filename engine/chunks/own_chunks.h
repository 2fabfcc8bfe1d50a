// Storing what a rank's verdicts say that it keeps, a part at a time.
#pragma once

#include <cstdint>

#include "engine/chunks/chunk_writer.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"

namespace dedup::engine {

class OwnChunks {
 public:
  // All must outlive it.
  OwnChunks(const NamedChunks& chunks, const Verdicts& verdicts, ChunkWriter& writer,
            FirstError& error)
      : chunks_(chunks), verdicts_(verdicts), writer_(writer), error_(error) {}

  // Bytes stored at once while others' chunks are on their way: little, since meanwhile nothing is
  // received, and nothing more is sent.
  static constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 20;

  // Stores about as much; false once all is stored, or there is an error.
  bool store_some();
  std::uint64_t bytes() const { return bytes_; }  // of the chunks that it came to

 private:
  const NamedChunks& chunks_;
  const Verdicts& verdicts_;
  ChunkWriter& writer_;
  FirstError& error_;
  std::uint32_t next_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace dedup::engine
