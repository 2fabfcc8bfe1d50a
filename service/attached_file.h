// A file that this job uses on this node: its locks, its chunks, the attempt at committing it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/file_chunks.h"
#include "service/messages/store_node.h"
#include "service/node_commit.h"
#include "service/readable_file.h"
#include "store/commit_record.h"
#include "store/store.h"

namespace dedup::service {

class AttachedFile {
 public:
  // Not attached yet: call attach().
  AttachedFile(std::shared_ptr<store::Store> store, const Id128& identity, const Id128& base);

  // Takes the locks that `request` asks for and are not held yet; see Attach in
  // messages/store_node.h. On failure everything is as before.
  // `own`: the files that this job uses on this node.
  Result<AttachReply> attach(const Attach& request, const std::vector<Id128>& own);
  // Finishes what a broken commit left undone here. kFileInUse, to a reader, if another job commits
  // meanwhile, or has committed a newer generation.
  Status adopt(const store::CommitRecord& record);
  // Frees the locks and removes from the store what no committed generation has. Nothing else may
  // be called afterwards.
  Status detach();
  // The same, and removes the whole file. `stores_left`: see Detach.
  Status drop(const std::vector<Id128>& stores_left);

  // kReadOnly if the file is not attached for writing.
  Status check_writable() const;
  const Id128& base() const { return chunks_.base(); }  // attempt; zero: none
  store::Store& store() { return *store_; }
  // Once a generation: frees what others do not need any more, and what nobody will ask for but in
  // the rarest case. False if there is nothing to be tried.
  bool make_room(const std::vector<Id128>& own);
  // Drops kept generations, as store::give_up_kept(); nothing until the next generation once there
  // were none.
  std::vector<std::string> give_up_kept(std::uint64_t bytes);
  FileChunks& chunks() { return chunks_; }
  ReadableFile readable() { return {*store_, identity_, chunks_}; }

  // --- Commit -----------------------------------------------------------------------------------
  // The attempt `id`, begun if it is a new one: an older one that was not committed is abandoned.
  // kArgument if `id` was aborted.
  Result<NodeCommit*> begin_commit(const Id128& id);
  Status prepare(const Prepare& request);
  Status commit(const Id128& id, bool flush);
  Status abort(const Id128& id);
  Result<CollectReply> collect(const Id128& id);

 private:
  // Of the newest generation's record, what is asked for again and again.
  struct Newest {
    Id128 attempt;
    std::vector<store::KeptGeneration> kept;
  };
  // kNotFound: none is committed here. Read once as long as the file is locked for writing: nobody
  // else changes then which it is.
  Result<Newest> newest_here() const;
  Result<Id128> newest() const;  // zero: none, or none that can be read
  // Whether some generation that other nodes may have committed is only prepared here: then nothing
  // may be removed.
  Result<bool> in_doubt() const;
  void share_with(const Id128& donor, const Id128& attempt);
  // Removes what earlier jobs, or this one, left uncommitted, but for what was prepared (see
  // store::Store::collect).
  Status tidy();

  std::shared_ptr<store::Store> store_;
  Id128 identity_;
  std::unique_ptr<store::Store::Lock> write_lock_;
  std::unique_ptr<store::Store::Lock> generation_lock_;
  mutable std::optional<Result<Newest>> newest_;  // while write_lock_ is held
  bool tidied_ = false;
  bool may_make_room_ = true;
  bool may_give_up_ = true;
  FileChunks chunks_;
  std::unique_ptr<NodeCommit> commit_;
  Id128 aborted_;  // the last one
};

}  // namespace dedup::service
