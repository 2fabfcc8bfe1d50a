#include "engine/chunks/dump_result.h"

namespace dedup::engine {

DumpStats& DumpStats::operator+=(const DumpStats& other) {
  bytes_written += other.bytes_written;
  bytes_zero += other.bytes_zero;
  bytes_unique_local += other.bytes_unique_local;
  bytes_stored_before += other.bytes_stored_before;
  bytes_fingerprinted += other.bytes_fingerprinted;
  bytes_unique_collective += other.bytes_unique_collective;
  bytes_stored += other.bytes_stored;
  bytes_sent += other.bytes_sent;
  bytes_received += other.bytes_received;
  bytes_reducing += other.bytes_reducing;
  merges += other.merges;
  seconds_hashing += other.seconds_hashing;
  seconds_reducing += other.seconds_reducing;
  seconds_exchanging += other.seconds_exchanging;
  seconds_storing += other.seconds_storing;
  seconds_writing += other.seconds_writing;
  return *this;
}

}  // namespace dedup::engine
