// Reading what another node of this host has: its service says where, and lends what it is in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/passed_descriptor.h"
#include "service/executor.h"
#include "service/known_places.h"
#include "service/messages/store_node.h"
#include "service/neighbours.h"
#include "service/server.h"
#include "service/wire.h"
#include "store/system.h"
#include "test/hooks/forwarding_system.h"
#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::service {
namespace {

constexpr Secret kSecret = {4, 5, 6};
constexpr NodeIndex kHolder = 0;

// Made before any service has a thread that may use it, and outlives what it has opened.
store::ForwardingSystem other_system(store::kernel());

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
};

// A node with a store and a service, and a process of another node.
class ServiceNeighbours : public testing::Test {
 protected:
  void SetUp() override { start(); }

  void start() {
    auto server = Server::start(kSecret, true, make_node_handler("n0", kHolder, 2, executor_));
    ASSERT_TRUE(server.is_ok()) << server.status().message();
    server_ = std::move(*server);
    const Peer peer{"n0", server_->addresses(), server_->port()};
    client_ =
        std::make_unique<Client>(std::vector<Peer>{peer, {"n1", {}, 0}}, NodeIndex{1}, kSecret);
    neighbours_ = std::make_unique<Neighbours>(*client_, identity_);
    Attach attach;
    attach.identity = identity_;
    attach.path = "/f";
    attach.store_template = tiers_ + (temp_ / "store-%n");
    attach.write = attach.create = true;
    ASSERT_TRUE(client_->call(kHolder, attach).is_ok());
    PutChunks put{identity_, {plan::Placement::copies_on({kHolder})}, {}};
    for (std::size_t i = 0; i < 200; ++i) {
      Chunk chunk{{}, test::random_bytes(random_, 20 + 701 * (i % 9))};
      chunk.fingerprint =
          i % 3 == 0 ? test::content_name(chunk.data) : test::single_name(chunk.data, number_++);
      put.chunks.push_back(PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
      chunks_.push_back(std::move(chunk));
    }
    ASSERT_TRUE(client_->call(kHolder, put).is_ok());
  }

  // Positions that were not had; the others are right.
  std::vector<std::size_t> read(Neighbours& neighbours) {
    std::vector<Bytes> out;
    std::vector<store::ChunkTarget> targets;
    for (const Chunk& chunk : chunks_) out.emplace_back(chunk.data.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      targets.push_back({chunks_[i].fingerprint, out[i]});
    }
    std::vector<std::size_t> missing = neighbours.read(kHolder, targets);
    std::size_t next = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (next < missing.size() && missing[next] == i) {
        ++next;
      } else {
        EXPECT_EQ(out[i], chunks_[i].data) << i;
      }
    }
    return missing;
  }

  // A service lets go of what it lent after that has arrived; before it takes the next request.
  void wait_for_service() {
    EXPECT_TRUE(client_->call(kHolder, Locate{identity_, {chunks_[0].fingerprint}}).is_ok());
  }

  void change_byte_of(const Chunk& chunk) {
    const auto located = client_->call(kHolder, Locate{identity_, {chunk.fingerprint}});
    ASSERT_TRUE(located.is_ok());
    const std::uint64_t at = store::chunk_end(chunk.fingerprint, located->locations[0]) - 1;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_.path())) {
      if (entry.path().extension() != ".seg") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 1));
    }
  }

  test::TempDir temp_;
  std::string tiers_;  // faster ones
  test::Random random_{20};
  Id128 identity_{{9}};
  std::uint64_t number_ = 100;
  std::vector<Chunk> chunks_;
  Executor executor_{{Executor::Run::kByHand}};
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Neighbours> neighbours_;
};

TEST_F(ServiceNeighbours, ReadsEverything) {
  ASSERT_TRUE(neighbours_->has(kHolder));
  EXPECT_FALSE(neighbours_->has(1));  // oneself
  EXPECT_TRUE(read(*neighbours_).empty());
  EXPECT_TRUE(read(*neighbours_).empty());  // by what was lent before
  neighbours_->forget();
  EXPECT_TRUE(read(*neighbours_).empty());
}

TEST_F(ServiceNeighbours, GivesNoDamagedChunk) {
  for (const std::size_t damaged : {std::size_t{0}, std::size_t{100}, chunks_.size() - 1}) {
    change_byte_of(chunks_[damaged]);
  }
  EXPECT_EQ(read(*neighbours_), (std::vector<std::size_t>{0, 100, chunks_.size() - 1}));
}

TEST_F(ServiceNeighbours, ReadsNothingAroundAServiceThatHasStopped) {
  EXPECT_TRUE(read(*neighbours_).empty());
  server_->stop();
  EXPECT_FALSE(neighbours_->has(kHolder));
  EXPECT_EQ(read(*neighbours_).size(), chunks_.size());
}

TEST_F(ServiceNeighbours, ReadsNothingThatTheServiceDoesNotHaveAnyMore) {
  EXPECT_TRUE(read(*neighbours_).empty());
  ASSERT_TRUE(client_->call(kHolder, Detach{identity_, false, {}}).is_ok());
  EXPECT_EQ(read(*neighbours_).size(), chunks_.size());
}

TEST_F(ServiceNeighbours, NobodyIsNearWhereTheHostIsNotShared) {
  setenv("DEDUP_SAME_HOST", "network", 1);
  auto server = Server::start(kSecret, true, make_node_handler("n0", kHolder, 2, executor_));
  unsetenv("DEDUP_SAME_HOST");
  ASSERT_TRUE(server.is_ok());
  Client client({{"n0", (*server)->addresses(), (*server)->port()}, {"n1", {}, 0}}, 1, kSecret);
  EXPECT_FALSE(client.is_neighbour(kHolder));
  EXPECT_EQ(client.call(kHolder, Locate{identity_, {}}).status().code(), Code::kInternal);
  EXPECT_FALSE(client.is_neighbour(kHolder));
}

TEST_F(ServiceNeighbours, WhoDoesNotKnowTheSecretIsNotNear) {
  Client client({{"n0", server_->addresses(), server_->port()}, {"n1", {}, 0}}, 1, Secret{7});
  EXPECT_FALSE(client.is_neighbour(kHolder));
}

// As who is asked about, and how often.
TEST_F(ServiceNeighbours, PlacesThatAreKnownAreNotAskedFor) {
  KnownPlaces places;
  auto block = std::make_shared<Block>();
  block->placements.push_back(plan::Placement::copies_on({kHolder}));
  std::vector<Fingerprint> names;
  for (const Chunk& chunk : chunks_) {
    block->pieces.push_back(
        {0, 1, 0, static_cast<std::uint32_t>(chunk.data.size()), 0, chunk.fingerprint});
    names.push_back(chunk.fingerprint);
  }
  const std::vector<std::shared_ptr<const Block>> around{block};
  const std::vector<Fingerprint> first{names[0]};
  const auto found = places.locate(*client_, identity_, kHolder, first, around);
  ASSERT_TRUE(found && found->size() == 1);
  const auto all = locate_at(*client_, identity_, kHolder, names);
  ASSERT_TRUE(all);
  EXPECT_EQ(found->front(), all->front());
  server_->stop();
  // With the first one came where stretches begin.
  std::vector<NamedChunk> chunks;
  for (const Piece& piece : block->pieces)
    chunks.push_back({piece.fingerprint, piece.chunk_length});
  const std::vector<Fingerprint> begins = store::firsts_of_stretches(chunks);
  EXPECT_GT(begins.size(), 1u);
  EXPECT_LT(begins.size(), names.size());
  const auto again = places.locate(*client_, identity_, kHolder, begins, around);
  ASSERT_TRUE(again);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto at = std::find(names.begin(), names.end(), begins[i]) - names.begin();
    EXPECT_EQ((*again)[i], (*all)[static_cast<std::size_t>(at)]);
  }
  EXPECT_FALSE(places.locate(*client_, identity_, kHolder, names, around));
  places.clear();
  EXPECT_FALSE(places.locate(*client_, identity_, kHolder, first, around));
}

// A service that cannot lend is asked for chunks as before, and not again for what it has not.
TEST_F(ServiceNeighbours, WhereNothingIsLentNothingIsRead) {
  store::System& before = store::use_system(other_system);
  // Of a file that is not the kernel's the store lends nothing.
  EXPECT_EQ(read(*neighbours_).size(), chunks_.size());
  store::use_system(before);
  EXPECT_FALSE(neighbours_->has(kHolder));
  EXPECT_TRUE(client_->is_neighbour(kHolder));
  neighbours_->forget();
  EXPECT_TRUE(neighbours_->has(kHolder));
  EXPECT_TRUE(read(*neighbours_).empty());
}

TEST_F(ServiceNeighbours, WhatIsLentIsToBeReadOnly) {
  const auto located = client_->call(kHolder, Locate{identity_, {chunks_[0].fingerprint}});
  ASSERT_TRUE(located.is_ok());
  const auto lent = client_->borrow(kHolder, LendSegment{identity_, located->locations[0].segment});
  ASSERT_TRUE(lent.is_ok()) << lent.status().message();
  EXPECT_EQ(fcntl(lent->segment.descriptor().fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_NE(fcntl(lent->segment.descriptor().fd(), F_GETFD) & FD_CLOEXEC, 0);
}

// What was lent is the segment's until it is let go of, whatever becomes of its name.
TEST_F(ServiceNeighbours, ReadsOnWhatWasRemovedMeanwhile) {
  EXPECT_TRUE(read(*neighbours_).empty());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_.path())) {
    if (entry.path().extension() == ".seg") std::filesystem::remove(entry.path());
  }
  EXPECT_TRUE(read(*neighbours_).empty());
  neighbours_->forget();
  EXPECT_EQ(read(*neighbours_).size(), chunks_.size());
}

TEST_F(ServiceNeighbours, KeepsOpenWhatStaysWhereItIs) {
  const std::size_t before = test::open_below(temp_.path());
  EXPECT_TRUE(read(*neighbours_).empty());
  wait_for_service();
  EXPECT_EQ(test::open_below(temp_.path()), before + 1);
  neighbours_->forget();
  EXPECT_EQ(test::open_below(temp_.path()), before);
}

class ServiceNeighboursWithTiers : public ServiceNeighbours {
 protected:
  void SetUp() override {
    // Copies go into the second.
    tiers_ = temp_ / "a-%n:" + (temp_ / "b-%n:");
    start();
  }
};

// Where it would take its space once it has moved.
TEST_F(ServiceNeighboursWithTiers, KeepsNothingOpenThatMayMove) {
  const std::size_t before = test::open_below(temp_ / "b-n0");
  EXPECT_GT(before, 0u);  // the service goes on with it
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(read(*neighbours_).empty());
    wait_for_service();
    EXPECT_EQ(test::open_below(temp_ / "b-n0"), before);
  }
}

TEST_F(ServiceNeighbours, ReadsNothingOfASegmentThatWasCutOff) {
  EXPECT_TRUE(read(*neighbours_).empty());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_.path())) {
    if (entry.path().extension() == ".seg") std::filesystem::resize_file(entry.path(), 100);
  }
  EXPECT_EQ(read(*neighbours_).size(), chunks_.size());
}

// ---- Being told of a writer ---------------------------------------------------------------------

// A process that has a file open to read, of a node that somebody else opens it on.
class ServiceAwaitWriter : public ServiceNeighbours {
 protected:
  Attach attach_other(bool write) const {
    Attach attach;
    attach.identity = other_;
    attach.path = "/g";
    attach.store_template = temp_ / "store-%n";
    attach.write = write;
    attach.create = true;
    return attach;
  }
  const Id128 other_{{8}};
};

// Whoever hears that somebody has opened the file for writing finds that he was told before.
TEST_F(ServiceAwaitWriter, IsToldBeforeWhoOpensIt) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client_->call(kHolder, attach_other(false)).is_ok());
    const Id128 ticket = Id128::random();
    auto told = client_->start(kHolder, AwaitWriter{ticket});
    // Both are on their way at once: the service may take the later one first.
    bool is_awaited = false;
    while (!is_awaited) {
      const auto reply = client_->call(kHolder, AskWriters{other_, ticket});
      ASSERT_TRUE(reply.is_ok() && !reply->may_write);
      is_awaited = reply->is_awaited;
    }
    EXPECT_FALSE(told.is_ready());
    ASSERT_TRUE(client_->call(kHolder, attach_other(true)).is_ok());
    EXPECT_TRUE(told.is_ready());
    EXPECT_TRUE(told.wait().is_ok());
    ASSERT_TRUE(client_->call(kHolder, Detach{other_, false, {}}).is_ok());
  }
}

TEST_F(ServiceAwaitWriter, IsToldOfAServiceThatHasStopped) {
  auto told = client_->start(kHolder, AwaitWriter{Id128::random()});
  EXPECT_FALSE(told.is_ready());
  server_->stop();
  EXPECT_TRUE(told.is_ready());
}

// What comes over the network may come after what was sent later to somebody else.
TEST_F(ServiceAwaitWriter, NothingIsTakenForAnAnswerThatWouldBeLate) {
  setenv("DEDUP_SAME_HOST", "network", 1);
  auto server = Server::start(kSecret, true, make_node_handler("n0", kHolder, 2, executor_));
  unsetenv("DEDUP_SAME_HOST");
  ASSERT_TRUE(server.is_ok());
  Client client({{"n0", (*server)->addresses(), (*server)->port()}, {"n1", {}, 0}}, 1, kSecret);
  EXPECT_TRUE(client.start(kHolder, AwaitWriter{Id128::random()}).is_ready());
}

// ---- On the way --------------------------------------------------------------------------------

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class LentOnTheWay : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    from_ = Socket(ends[0]);
    to_ = Socket(ends[1]);
  }
  // So many at once, of which the other end was told one.
  void send(std::size_t count) {
    const Descriptor what(memfd_create("segment", MFD_CLOEXEC));
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(4 * sizeof(int))> control{};
    iovec part{&byte_, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const about = CMSG_FIRSTHDR(&message);
    about->cmsg_level = SOL_SOCKET;
    about->cmsg_type = SCM_RIGHTS;
    about->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) {
      const int fd = what.fd();
      std::memcpy(CMSG_DATA(about) + i * sizeof fd, &fd, sizeof fd);
    }
    ASSERT_EQ(sendmsg(from_.fd(), &message, 0), 1);
  }
  bool arrives() {
    store::LentSegment lent;
    std::byte got{};
    EXPECT_EQ(receive_some(to_.fd(), {&got, 1}, lent), 1);
    EXPECT_EQ(got, byte_);
    return lent.is_there();
  }

  Socket from_;
  Socket to_;
  std::byte byte_{42};
};

TEST_F(LentOnTheWay, NoneIsLeftOpen) {
  const std::size_t before = open_descriptors();
  for (std::size_t count = 1; count <= 4; ++count) {
    send(count);
    EXPECT_TRUE(arrives());
    EXPECT_EQ(open_descriptors(), before) << count;
  }
  ASSERT_EQ(::send(from_.fd(), &byte_, 1, 0), 1);
  EXPECT_FALSE(arrives());
}

TEST_F(LentOnTheWay, WhoHasTooManyFilesOpenGetsTheRest) {
  send(1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool has_arrived = arrives();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(has_arrived);
  send(1);
  EXPECT_TRUE(arrives());
}

TEST_F(LentOnTheWay, OtherUsersAreSeen) {
  EXPECT_TRUE(is_own_user(to_.fd()));
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  // What a connection tells of its other end is who that was when it was made.
  ASSERT_EQ(seteuid(65534), 0);
  SetUp();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_FALSE(is_own_user(to_.fd()));
}

}  // namespace
}  // namespace dedup::service
