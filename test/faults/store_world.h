// One node's store and real paths on disks in memory, and a job that uses them, with one file or
// with two that share segments: for tests that let calls fail, kill the process and take the power.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/commit_record.h"
#include "store/real_path.h"
#include "test/faults/memory_system.h"
#include "test/hooks/faulty_system.h"
#include "test/unit/store_job.h"

namespace dedup::test {

class StoreWorld : public service::StoreJob {
 public:
  StoreWorld();
  ~StoreWorld();

  // --- What a job does --------------------------------------------------------------------------
  // The file that everything is about until the next turn: 0, as at first, or 1.
  void turn_to(std::size_t file);
  // A new file gets the segments of the other one's last generation.
  Status attach_sharing();
  // What the last generation that was committed consists of.
  std::vector<service::Chunk> committed() const { return generations_[certain_ - 1].chunks; }
  // An error unless so many segments of the file are the other one's, too.
  Status expect_shared(std::size_t segments) const;
  // Commits a generation that consists of `what`, with its placeholder, as the engine does. After a
  // failure the attempt is aborted.
  Status commit_generation(const std::vector<service::Chunk>& what, bool flush = true);
  // Writes to a log and clears it, as an independent write and its conversion do.
  Status use_log();
  // Takes over a generation that other nodes have committed; neither chunks nor shards of it are
  // kept here.
  Status adopt();
  // Deletes the open file. `stores_left`: see Detach.
  Status delete_file(const std::vector<Id128>& stores_left);
  Status detach();
  // The process ends, in whatever state it is.
  void end_process();

  // --- What must be true afterwards -------------------------------------------------------------
  // Everything is as it was promised, with the next process, and no file is left that nothing
  // leads to. Returns what is wrong; empty: nothing.
  std::string check();
  // What the store has is one of the generations that it may have, whole. Sets found_.
  std::string check_newest();
  // From now on everything is durable.
  void settle();

  MemorySystem& memory() { return memory_; }
  store::FaultPlan& plan() { return plan_; }

  static constexpr const char* kDisk = "/n1";
  static constexpr const char* kShared = "/shared";

 private:
  struct Generation {
    store::CommitRecord record;
    std::vector<service::Chunk> chunks;
    bool aborted = false;  // and said to be
  };

  // What is known of a file while it is the other one's turn.
  struct File {
    std::string path;
    Id128 identity;
    Id128 session;
    Id128 base;
    store::Digest base_digest{};
    std::uint64_t number = 0;
    std::vector<Generation> generations;
    std::size_t certain = 0;
    bool may_be_deleted = false;
    bool is_deleted = false;
    const Generation* found = nullptr;
  };
  void exchange(File& file);
  // A rank that finds the donor's index in this file looks by itself for what it need not store:
  // the node must have that.
  void look_for(const File& donor);

  Status put_placeholder(const store::CommitRecord& record);
  const Generation* known(const Id128& attempt) const;
  std::string check_content(const Generation& generation);
  std::string check_placeholder();
  std::string check_next_job();
  // The newest generation, by a job that only reads.
  std::string check_again();
  // The names that lead to something of the file.
  std::string expect_files(std::set<std::string>& expected);
  // Files that nothing leads to.
  std::string check_files();
  // What the store says of its space; all of it is free when the files are gone.
  std::string check_space();

  MemorySystem memory_;
  store::FaultPlan plan_;
  store::FaultySystem faulty_{memory_, plan_};
  store::System& before_ = store::use_system(faulty_);
  int process_ = 1;

  std::array<File, 2> files_;
  std::size_t turn_ = 0;
  std::size_t played_ = 1;  // so many of the files
  std::string wrong_;       // that was seen on the way

  std::vector<Generation> generations_;  // that were prepared, in order
  std::size_t certain_ = 0;              // so many of them: the last one's commit has succeeded
  bool may_be_deleted_ = false;
  bool is_deleted_ = false;
  const Generation* found_ = nullptr;
};

}  // namespace dedup::test
