// A job's handle of a file, and a commit of it, for tests of the protocol.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/generation_commit.h"
#include "engine/protocol/leases.h"
#include "service/messages/homes.h"
#include "test/simulation/cluster.h"

namespace dedup::simulation {

// For writing, with two copies; not opened.
inline std::unique_ptr<engine::JobFile> handle_of(Job& job, const Ranks& ranks,
                                                  std::size_t name = 0) {
  auto file = std::make_unique<engine::JobFile>(job.client(), ranks);
  file->path = Cluster::path(name);
  file->hints.store = "/%n/s";
  file->hints.replication = 2;
  file->home = service::file_home(file->path, file->nodes());
  file->writable = true;
  file->handle = Id128::random();
  return file;
}

// A file that is not there is made if it is for writing.
inline Status open(Job& job, engine::JobFile& file) {
  bool created = false;
  const auto begin = [&]() -> Status {
    const std::string store = Cluster::disk(job.nodes().front()) + "/s";
    DEDUP_ASSIGN(file.local, engine::LocalFile::get(file.client(), file.identity(), store));
    return Status::ok();
  };
  return engine::find_and_attach(file, {file.writable, false}, begin, created);
}

inline std::unique_ptr<engine::JobFile> open_file(Job& job, std::size_t name = 0) {
  auto file = handle_of(job, job.ranks(), name);
  const Status opened = open(job, *file);
  EXPECT_TRUE(opened.is_ok()) << opened.message();
  return file;
}

inline Status commit(engine::JobFile& file) {
  DEDUP_ASSIGN(const auto lock, engine::JobLock::take_with_view(file, service::LockKind::kCommit));
  const Status status = engine::GenerationCommit(file).run([] { return Status::ok(); });
  return file.ranks().agree(status);
}

}  // namespace dedup::simulation
