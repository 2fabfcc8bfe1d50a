// The file home, with responders that only note what they were told.
#include "base/fields.h"
#include "service/file_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "test/unit/fake_responder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace dedup::service {
namespace {

Id128 id(std::uint8_t n) {
  Id128 id;
  id.bytes[0] = n;
  return id;
}

// What became of one request.
using Waited = std::shared_ptr<Outcome>;

template <typename Reply>
Reply reply_of(const Waited& outcome) {
  EXPECT_TRUE(outcome->is_ok());
  std::optional<Reply> reply = decoded<Reply>(outcome->body);
  EXPECT_TRUE(reply);
  return reply.value_or(Reply{});
}

class FileHomeTest : public testing::Test {
 protected:
  template <typename Request>
  Waited ask(const Request& request, ConnectionId connection = 1) {
    auto outcome = std::make_shared<Outcome>();
    home.on(request, std::make_unique<FakeResponder>(connection, outcome));
    return outcome;
  }
  static FileInfo info(std::uint8_t identity, std::uint64_t size = 100) {
    FileInfo info;
    info.identity = id(identity);
    info.path = "/f";
    info.store_template = "/tmp/%n";
    info.size = size;
    return info;
  }
  // Opens /f as identity 1 with this handle.
  void open(std::uint8_t handle) {
    ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
    ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(handle), info(1)}).is_ok());
  }
  CloseBeginReply close(std::uint8_t handle) {
    const auto reply = reply_of<CloseBeginReply>(ask(CloseBegin{id(1), id(handle)}));
    EXPECT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
    return reply;
  }
  std::uint64_t size() { return home.on(GetSize{id(1)})->size; }

  FileHome home;
};

TEST_F(FileHomeTest, KnowsAFileFromItsFirstOpenToItsLastClose) {
  const Waited first = ask(OpenBegin{"/f"});
  EXPECT_FALSE(reply_of<OpenBeginReply>(first).known);
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(11), info(1)}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)})->store_template, "/tmp/%n");

  const auto second = reply_of<OpenBeginReply>(ask(OpenBegin{"/f"}));
  EXPECT_TRUE(second.known);
  EXPECT_EQ(second.info.identity, id(1));
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(12), info(1)}).is_ok());

  EXPECT_FALSE(close(11).last);
  EXPECT_EQ(size(), 100u);
  const auto last = reply_of<CloseBeginReply>(ask(CloseBegin{id(1), id(12)}));
  EXPECT_TRUE(last.last);
  EXPECT_FALSE(last.deleted);
  EXPECT_EQ(last.info.identity, id(1));
  EXPECT_TRUE(home.on(GetFile{id(1)}).is_ok());
  ASSERT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  EXPECT_FALSE(reply_of<OpenBeginReply>(ask(OpenBegin{"/f"})).known);
}

TEST_F(FileHomeTest, AFailedOpenChangesNothing) {
  ask(OpenBegin{"/f"});
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, id(11), info(1)}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  open(11);
  ask(OpenBegin{"/f"});
  FileInfo other = info(1);
  other.writable = true;
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, id(12), other}).is_ok());
  EXPECT_FALSE(home.on(GetFile{id(1)})->writable);
  EXPECT_TRUE(close(11).last);
}

TEST_F(FileHomeTest, KnowsWhichNumberASessionThatEndedHasGivenLast) {
  const auto begin = [&] { return reply_of<OpenBeginReply>(ask(OpenBegin{"/f"})).ended; };
  const auto end_open = [&](std::uint8_t session) {
    FileInfo writable = info(1);
    writable.writable = true;
    writable.session = id(session);
    ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(11), writable}).is_ok());
  };
  EXPECT_EQ(begin(), store::LineageEntry{});
  end_open(21);
  EXPECT_EQ(home.on(NextGeneration{id(1), 6})->number, 7u);
  EXPECT_EQ(home.on(NextGeneration{id(1), 6})->number, 8u);
  close(11);
  const store::LineageEntry ended{id(21), 8};
  EXPECT_EQ(begin(), ended);
  // One in which nothing was tried.
  end_open(22);
  close(11);
  EXPECT_EQ(begin(), ended);
  EXPECT_EQ(reply_of<OpenBeginReply>(ask(OpenBegin{"/g"})).ended, store::LineageEntry{});
}

TEST_F(FileHomeTest, OneTurnAtATimeInOrderOfArrival) {
  open(11);
  open(12);
  const Waited a = ask(OpenBegin{"/f"}, 1);
  const Waited b = ask(CloseBegin{id(1), id(11)}, 2);
  const Waited c = ask(OpenBegin{"/f"}, 3);
  const Waited d = ask(OpenBegin{"/other"}, 4);
  EXPECT_TRUE(a->is_ok());
  EXPECT_TRUE(d->is_ok());
  EXPECT_TRUE(b->waits());
  EXPECT_EQ(home.on(CloseEnd{id(1)}).status().code(), Code::kInternal);  // an open has the turn
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(13), info(1)}).is_ok());
  EXPECT_FALSE(reply_of<CloseBeginReply>(b).last);
  EXPECT_TRUE(c->waits());
  EXPECT_EQ(home.on(OpenEnd{"/f", true, id(14), info(1)}).status().code(), Code::kInternal);
  ASSERT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
  EXPECT_TRUE(reply_of<OpenBeginReply>(c).known);
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}}).is_ok());
  EXPECT_EQ(home.on(OpenEnd{"/f", false, {}, {}}).status().code(), Code::kInternal);
}

TEST_F(FileHomeTest, AnOpenThatWaitsForTheLastCloseFindsTheFileUnknown) {
  open(11);
  const Waited closing = ask(CloseBegin{id(1), id(11)}, 1);
  const Waited opening = ask(OpenBegin{"/f"}, 2);
  const Waited again = ask(CloseBegin{id(1), id(11)}, 3);
  EXPECT_TRUE(reply_of<CloseBeginReply>(closing).last);
  EXPECT_TRUE(opening->waits());
  ASSERT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
  EXPECT_FALSE(reply_of<OpenBeginReply>(opening).known);
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(12), info(2)}).is_ok());
  EXPECT_EQ(again->code(), Code::kNotFound);
  EXPECT_TRUE(home.on(GetFile{id(2)}).is_ok());
}

TEST_F(FileHomeTest, AConnectionThatBreaksGivesItsTurnBack) {
  open(11);
  const Waited a = ask(OpenBegin{"/f"}, 1);
  const Waited b = ask(OpenBegin{"/f"}, 2);
  const Waited c = ask(CloseBegin{id(1), id(11)}, 3);
  home.closed(9);
  EXPECT_TRUE(b->waits());
  home.closed(2);  // while it waits
  home.closed(1);  // while it has the turn
  EXPECT_TRUE(b->waits());
  EXPECT_TRUE(reply_of<CloseBeginReply>(c).last);
  const Waited d = ask(OpenBegin{"/f"}, 4);
  home.closed(3);  // in the middle of the last close
  EXPECT_FALSE(reply_of<OpenBeginReply>(d).known);
  home.closed(4);
  EXPECT_FALSE(reply_of<OpenBeginReply>(ask(OpenBegin{"/f"}, 5)).known);
}

TEST_F(FileHomeTest, ASecondOpenKeepsWhatTheJobDid) {
  open(11);
  ASSERT_TRUE(home.on(SetSize{id(1), 500}).is_ok());
  // It upgrades to writing.
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  FileInfo writing = info(1, 100);
  writing.writable = true;
  writing.session = id(50);
  writing.key = id(60);
  writing.record = Bytes(3);
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(12), writing}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)})->size, 500u);
  EXPECT_TRUE(home.on(GetFile{id(1)})->writable);
  EXPECT_EQ(home.on(GetFile{id(1)})->record.size(), 3u);
  // A commit that is done while a third open is under way, which knows of an older record.
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  ASSERT_TRUE(home.on(CommitDone{id(1), Bytes(4), {{id(60), "n0"}}}).is_ok());
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(13), info(1)}).is_ok());
  const FileInfo now = *home.on(GetFile{id(1)});
  EXPECT_TRUE(now.writable);
  EXPECT_EQ(now.session, id(50));
  EXPECT_EQ(now.key, id(60));
  EXPECT_EQ(now.record.size(), 4u);
  ASSERT_EQ(now.stores.size(), 1u);
  EXPECT_EQ(now.stores[0].node, "n0");
}

TEST_F(FileHomeTest, NoTwoAttemptsOfASessionGetOneNumber) {
  EXPECT_EQ(home.on(NextGeneration{id(1), 0}).status().code(), Code::kNotFound);
  open(10);
  EXPECT_EQ(home.on(NextGeneration{id(1), 0})->number, 1u);
  EXPECT_EQ(home.on(NextGeneration{id(1), 0})->number, 2u);
  // Another handle, that has seen a commit of somebody else's.
  open(11);
  EXPECT_EQ(home.on(NextGeneration{id(1), 7})->number, 8u);
  EXPECT_EQ(home.on(NextGeneration{id(1), 7})->number, 9u);
  // The file keeps its numbers when it loses its name.
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  ASSERT_TRUE(home.on(SetAside{id(1), false}).is_ok());
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}}).is_ok());
  EXPECT_EQ(home.on(NextGeneration{id(1), 7})->number, 10u);
}

TEST_F(FileHomeTest, RefusesToMixFiles) {
  open(11);
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  EXPECT_EQ(home.on(OpenEnd{"/f", true, id(12), info(2)}).status().code(), Code::kInternal);
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  EXPECT_EQ(home.on(OpenEnd{"/f", true, id(11), info(1)}).status().code(), Code::kInternal);
  ASSERT_TRUE(ask(OpenBegin{"/g"})->is_ok());
  EXPECT_EQ(home.on(OpenEnd{"/g", true, id(12), info(1)}).status().code(), Code::kInternal);
  ASSERT_TRUE(ask(OpenBegin{"/g"})->is_ok());
  EXPECT_EQ(home.on(OpenEnd{"/g", true, id(12), info(0)}).status().code(), Code::kInternal);
  EXPECT_FALSE(reply_of<OpenBeginReply>(ask(OpenBegin{"/g"})).known);
  EXPECT_TRUE(close(11).last);
}

TEST_F(FileHomeTest, SizesAndSharedPointers) {
  open(11);
  open(12);
  EXPECT_EQ(home.on(ExtendSize{id(1), 90})->size, 100u);
  EXPECT_EQ(home.on(ExtendSize{id(1), 190})->size, 190u);
  EXPECT_EQ(home.on(SetSize{id(1), 10})->size, 10u);
  EXPECT_EQ(size(), 10u);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(11), 5})->value, 0u);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(11), std::uint64_t{0} - 2})->value, 5u);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(11), 0})->value, 3u);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(12), 0})->value, 0u);
  EXPECT_TRUE(home.on(SharedSet{id(1), id(12), 77}).is_ok());
  EXPECT_EQ(home.on(SharedAdd{id(1), id(12), 0})->value, 77u);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(13), 0}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(SharedSet{id(1), id(13), 0}).status().code(), Code::kNotFound);
  close(12);
  EXPECT_EQ(home.on(SharedSet{id(1), id(12), 0}).status().code(), Code::kNotFound);
}

TEST_F(FileHomeTest, LeasesMayMakeTheFileLonger) {
  open(11);
  const Lease early{2, 1, 7, 0, 1};
  const Lease late{9, 0, 5, 3, 4};
  const auto leases = [&] { return home.on(GetSize{id(1)})->leases; };
  EXPECT_EQ(home.on(ExtendSize{id(1), 9 * kBlockSpan + 5, late})->size, 9 * kBlockSpan + 5);
  ASSERT_TRUE(home.on(ExtendSize{id(1), 2 * kBlockSpan + 5, early}).is_ok());
  // The early one's block is in the file whole.
  EXPECT_EQ(leases(), std::vector{late});
  EXPECT_EQ(home.on(ExtendSize{id(1), 10 * kBlockSpan})->leases.size(), 0u);
  EXPECT_TRUE(leases().empty());
  // But not in one that is to be shorter.
  EXPECT_EQ(home.on(SetSize{id(1), 3 * kBlockSpan})->leases, std::vector{late});
  EXPECT_EQ(home.on(SetSize{id(1), 3 * kBlockSpan - 1})->leases, (std::vector{early, late}));
  EXPECT_EQ(size(), 10 * kBlockSpan);
  // The block has another one before the end of this one is known: each counts.
  const Lease again{9, 0, 5, 4, 5};
  ASSERT_TRUE(home.on(ExtendSize{id(1), 0, again}).is_ok());
  EXPECT_EQ(home.on(SetSize{id(1), 3 * kBlockSpan})->leases, (std::vector{late, again}));
  EXPECT_EQ(home.on(ExtendSize{id(1), 11 * kBlockSpan, late, true})->size, 11 * kBlockSpan);
  // But once only.
  EXPECT_EQ(home.on(ExtendSize{id(1), 99 * kBlockSpan, late, true})->size, 11 * kBlockSpan);
  EXPECT_EQ(home.on(SetSize{id(1), 3 * kBlockSpan})->leases, std::vector{again});
  ASSERT_TRUE(home.on(ExtendSize{id(1), 0, again, true}).is_ok());
  EXPECT_EQ(home.on(SetSize{id(1), 3 * kBlockSpan})->size, 3 * kBlockSpan);
  EXPECT_EQ(size(), 3 * kBlockSpan);
  EXPECT_TRUE(close(11).last);
  open(12);
  EXPECT_TRUE(home.on(SetSize{id(1), 0})->leases.empty());
}

TEST_F(FileHomeTest, UnknownFilesAreNotFound) {
  EXPECT_EQ(home.on(GetSize{id(1)}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(ExtendSize{id(1), 1}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(SetSize{id(1), 1}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(Unlock{id(1), LockKind::kDump, id(2)}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(SharedAdd{id(1), id(2), 1}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(SharedSet{id(1), id(2), 1}).status().code(), Code::kNotFound);
  EXPECT_EQ(home.on(CommitDone{id(1), {}, {}}).status().code(), Code::kNotFound);
  EXPECT_EQ(ask(Lock{id(1), LockKind::kDump, id(2)})->code(), Code::kNotFound);
  EXPECT_EQ(ask(CloseBegin{id(1), id(2)})->code(), Code::kNotFound);
  EXPECT_EQ(home.on(CloseEnd{id(1)}).status().code(), Code::kNotFound);
  open(11);
  EXPECT_EQ(ask(CloseBegin{id(1), id(2)})->code(), Code::kNotFound);
  EXPECT_TRUE(ask(OpenBegin{"/f"})->is_ok());  // the turn is free
}

TEST_F(FileHomeTest, DeletionIsToldToTheLastClose) {
  open(11);
  open(12);
  EXPECT_EQ(home.on(SetAside{id(1), true}).status().code(), Code::kInternal);  // needs the turn
  ask(OpenBegin{"/f"});
  ASSERT_TRUE(home.on(SetAside{id(1), true}).is_ok());
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}}).is_ok());
  EXPECT_TRUE(home.on(GetFile{id(1)})->deleted);
  EXPECT_FALSE(close(11).last);
  const CloseBeginReply last = close(12);
  EXPECT_TRUE(last.last && last.deleted);
  EXPECT_TRUE(home.on(SetAside{id(1), true}).is_ok());
  open(13);
  EXPECT_FALSE(close(13).deleted);
}

TEST_F(FileHomeTest, APathWhoseFileWasSetAsideIsAnotherFile) {
  open(11);
  ask(OpenBegin{"/f"}, 1);
  const Waited opening = ask(OpenBegin{"/f"}, 2);
  const Waited closing = ask(CloseBegin{id(1), id(11)}, 3);
  ASSERT_TRUE(home.on(SetAside{id(1), false}).is_ok());
  // A close of the old file need not wait for the path's turn, an open does.
  EXPECT_TRUE(reply_of<CloseBeginReply>(closing).last);
  EXPECT_TRUE(opening->waits());
  ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(12), info(2, 7)}).is_ok());
  const auto second = reply_of<OpenBeginReply>(opening);
  EXPECT_TRUE(second.known);
  EXPECT_EQ(second.info.identity, id(2));
  EXPECT_EQ(second.aside, std::vector<Id128>{id(1)});
  EXPECT_EQ(size(), 100u);
  ASSERT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}}).is_ok());
  EXPECT_TRUE(reply_of<OpenBeginReply>(ask(OpenBegin{"/f"})).aside.empty());
  EXPECT_EQ(home.on(GetSize{id(2)})->size, 7u);
}

TEST_F(FileHomeTest, LocksAreGrantedInOrderOfArrival) {
  open(11);
  const auto lock = [&](LockKind kind, std::uint8_t owner, ConnectionId connection = 1) {
    return ask(Lock{id(1), kind, id(owner)}, connection);
  };
  const auto unlock = [&](LockKind kind, std::uint8_t owner) {
    return home.on(Unlock{id(1), kind, id(owner)}).is_ok();
  };
  const Waited dump1 = lock(LockKind::kDump, 1);
  const Waited dump2 = lock(LockKind::kDump, 2);
  const Waited commit3 = lock(LockKind::kCommit, 3);
  const Waited dump4 = lock(LockKind::kDump, 4);
  const Waited commit5 = lock(LockKind::kCommit, 5);
  const Waited atomic6 = lock(LockKind::kAtomic, 6);
  const Waited atomic7 = lock(LockKind::kAtomic, 7);
  EXPECT_TRUE(dump1->is_ok() && dump2->is_ok() && atomic6->is_ok());
  EXPECT_TRUE(commit3->waits() && dump4->waits() && commit5->waits() && atomic7->waits());
  EXPECT_FALSE(unlock(LockKind::kCommit, 1));
  EXPECT_FALSE(unlock(LockKind::kCommit, 3));  // it waits yet
  EXPECT_TRUE(unlock(LockKind::kDump, 1));
  EXPECT_TRUE(commit3->waits());
  EXPECT_TRUE(unlock(LockKind::kDump, 2));
  EXPECT_TRUE(commit3->is_ok());
  EXPECT_TRUE(dump4->waits());
  EXPECT_TRUE(unlock(LockKind::kCommit, 3));
  EXPECT_TRUE(dump4->is_ok());
  EXPECT_TRUE(commit5->waits());
  EXPECT_TRUE(unlock(LockKind::kDump, 4));
  EXPECT_TRUE(commit5->is_ok());
  EXPECT_TRUE(unlock(LockKind::kAtomic, 6));
  EXPECT_TRUE(atomic7->is_ok());
  EXPECT_FALSE(unlock(LockKind::kAtomic, 6));
}

TEST_F(FileHomeTest, ALockTellsWhatTheFileIsWhenItIsGranted) {
  open(11);
  const auto ask_for = [&](LockKind kind, std::uint8_t owner, std::uint64_t known) {
    return ask(Lock{id(1), kind, id(owner), known});
  };
  const auto first = reply_of<LockReply>(ask_for(LockKind::kCommit, 1, 0));
  ASSERT_TRUE(first.changed);
  EXPECT_EQ(first.info.identity, id(1));
  const std::uint64_t known = first.info.version;
  EXPECT_EQ(known, home.on(GetFile{id(1)})->version);
  // What changes while it waits counts, too; what is no news is not told.
  const Waited knows_old = ask_for(LockKind::kDump, 2, known);
  const Waited knows_new = ask_for(LockKind::kDump, 3, known + 1);
  const FileInfo committed = *home.on(CommitDone{id(1), Bytes(4), {{id(60), "n0"}}});
  EXPECT_EQ(committed.record.size(), 4u);
  EXPECT_EQ(committed.version, known + 1);
  ASSERT_TRUE(home.on(Unlock{id(1), LockKind::kCommit, id(1)}).is_ok());
  const auto told = reply_of<LockReply>(knows_old);
  ASSERT_TRUE(told.changed);
  EXPECT_EQ(told.info.record.size(), 4u);
  EXPECT_EQ(told.info.version, known + 1);
  EXPECT_FALSE(reply_of<LockReply>(knows_new).changed);
  // Another open is news, the size is not.
  ASSERT_TRUE(home.on(SetSize{id(1), 500}).is_ok());
  EXPECT_FALSE(reply_of<LockReply>(ask_for(LockKind::kDump, 4, known + 1)).changed);
  open(12);
  EXPECT_TRUE(reply_of<LockReply>(ask_for(LockKind::kDump, 5, known + 1)).changed);
  EXPECT_FALSE(reply_of<LockReply>(ask_for(LockKind::kAtomic, 6, 0)).changed);
  // And that it was deleted.
  const std::uint64_t before = home.on(GetFile{id(1)})->version;
  ASSERT_TRUE(ask(OpenBegin{"/f"})->is_ok());
  ASSERT_TRUE(home.on(SetAside{id(1), true}).is_ok());
  const auto deleted = reply_of<LockReply>(ask_for(LockKind::kDump, 7, before));
  EXPECT_TRUE(deleted.changed);
  EXPECT_TRUE(deleted.info.deleted);
}

TEST_F(FileHomeTest, AnUnlockTellsTheSize) {
  open(11);
  ASSERT_TRUE(ask(Lock{id(1), LockKind::kDump, id(1)})->is_ok());
  ASSERT_TRUE(home.on(Unlock{id(1), LockKind::kDump, id(1), 700}).is_ok());
  EXPECT_EQ(size(), 700u);
  ASSERT_TRUE(ask(Lock{id(1), LockKind::kDump, id(1)})->is_ok());
  ASSERT_TRUE(home.on(Unlock{id(1), LockKind::kDump, id(1), 5}).is_ok());
  EXPECT_EQ(size(), 700u);
  // Also where the lock has gone with its connection.
  const auto gone = home.on(Unlock{id(1), LockKind::kDump, id(1), 900});
  EXPECT_EQ(gone.status().code(), Code::kNotFound);
  EXPECT_EQ(size(), 900u);
}

TEST_F(FileHomeTest, LocksEndWithTheirConnection) {
  open(11);
  const Waited commit1 = ask(Lock{id(1), LockKind::kCommit, id(1)}, 1);
  const Waited commit2 = ask(Lock{id(1), LockKind::kCommit, id(2)}, 2);
  const Waited dump3 = ask(Lock{id(1), LockKind::kDump, id(3)}, 3);
  home.closed(2);
  EXPECT_TRUE(commit1->is_ok());
  EXPECT_TRUE(dump3->waits());
  home.closed(1);
  EXPECT_TRUE(commit2->waits());
  EXPECT_TRUE(dump3->is_ok());
  EXPECT_EQ(home.on(Unlock{id(1), LockKind::kCommit, id(1)}).status().code(), Code::kNotFound);
  // Who still waits when the file is closed for good is told.
  const Waited commit4 = ask(Lock{id(1), LockKind::kCommit, id(4)}, 4);
  EXPECT_TRUE(close(11).last);
  EXPECT_EQ(commit4->code(), Code::kNotFound);
}

// Random locks against a list that is searched from the start each time.
TEST_F(FileHomeTest, LocksLikeASimpleList) {
  struct Claim {
    LockKind kind;
    Id128 owner;
    ConnectionId connection;
    Waited outcome;
    bool granted = false;
  };
  const auto excludes = [](const Claim& a, const Claim& b) {
    const bool atomic_a = a.kind == LockKind::kAtomic;
    const bool atomic_b = b.kind == LockKind::kAtomic;
    if (atomic_a || atomic_b) return atomic_a && atomic_b;
    return a.kind == LockKind::kCommit || b.kind == LockKind::kCommit;
  };
  std::mt19937 random(3);
  open(11);
  std::vector<Claim> claims;  // in order of arrival
  for (int step = 0; step < 3000; ++step) {
    const auto pick = random() % (claims.size() + 1);
    switch (random() % 5) {
      case 0:
        if (pick == claims.size() || !claims[pick].granted) break;
        ASSERT_TRUE(home.on(Unlock{id(1), claims[pick].kind, claims[pick].owner}).is_ok());
        claims.erase(claims.begin() + static_cast<std::ptrdiff_t>(pick));
        break;
      case 1: {
        const ConnectionId gone = random() % 6;
        home.closed(gone);
        std::erase_if(claims, [&](const Claim& claim) { return claim.connection == gone; });
        break;
      }
      default: {
        Claim claim{static_cast<LockKind>(random() % 3), {}, random() % 6, nullptr};
        std::memcpy(claim.owner.bytes.data(), &step, sizeof step);
        claim.outcome = ask(Lock{id(1), claim.kind, claim.owner}, claim.connection);
        claims.push_back(claim);
      }
    }
    for (std::size_t i = 0; i < claims.size(); ++i) {
      // Granted once nothing that came before it, and is still there, excludes it.
      bool free = true;
      for (std::size_t j = 0; j < i; ++j) {
        if (excludes(claims[j], claims[i])) free = false;
      }
      claims[i].granted = claims[i].granted || free;
      ASSERT_EQ(claims[i].outcome->is_ok(), claims[i].granted) << "step " << step;
    }
  }
}

// ---- Writing back ------------------------------------------------------------------------------

using Of = TellWritten::Of;

class WriteBackTest : public FileHomeTest {
 protected:
  // The last close begins to write back as handle 20, by writers 0 and 3.
  void begin() {
    open(11);
    EXPECT_TRUE(reply_of<CloseBeginReply>(ask(CloseBegin{id(1), id(11)})).last);
    ASSERT_TRUE(home.on(BeginWriteBack{id(1), id(20), {0, 3}}).is_ok());
    ASSERT_TRUE(home.on(CloseEnd{id(1)}).is_ok());
  }
  WriteBackState tell(std::uint32_t writer, Of of) {
    return *home.on(TellWritten{id(1), id(20), writer, of, false, {}});
  }
  void open_again(std::uint8_t handle, bool writes) {
    EXPECT_TRUE(reply_of<OpenBeginReply>(ask(OpenBegin{"/f"})).known);
    ASSERT_TRUE(home.on(OpenEnd{"/f", true, id(handle), info(1), writes}).is_ok());
  }
};

TEST_F(WriteBackTest, KeepsTheFileOpenUntilTheLastWriterClosesIt) {
  begin();
  EXPECT_TRUE(home.on(GetFile{id(1)}).is_ok());
  EXPECT_TRUE(tell(0, Of::kProgress).is_wanted);
  EXPECT_FALSE(tell(3, Of::kEnd).is_last);
  const WriteBackState last = tell(0, Of::kEnd);
  EXPECT_TRUE(last.is_wanted && last.is_last && !last.has_failed);
  EXPECT_TRUE(close(20).last);
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  EXPECT_FALSE(tell(0, Of::kProgress).is_wanted);
}

TEST_F(WriteBackTest, IsNotWantedOnceSomebodyMayWrite) {
  begin();
  open_again(12, false);
  EXPECT_TRUE(tell(0, Of::kProgress).is_wanted);
  open_again(13, true);
  EXPECT_FALSE(tell(0, Of::kProgress).is_wanted);
  const WriteBackState late = tell(0, Of::kEnd);
  EXPECT_FALSE(late.is_wanted || late.is_last);
  EXPECT_FALSE(close(12).last);
  // The writers' handle went with the open.
  const auto reply = close(13);
  EXPECT_TRUE(reply.last && reply.was_stopped);
}

TEST_F(WriteBackTest, ThatHasEndedLeavesItsHandleToBeClosed) {
  begin();
  tell(0, Of::kEnd);
  EXPECT_TRUE(tell(3, Of::kEnd).is_last);
  // Before who was last closes it.
  open_again(13, true);
  EXPECT_FALSE(close(13).last);
  const auto reply = close(20);
  EXPECT_TRUE(reply.last && !reply.was_stopped);
}

TEST_F(WriteBackTest, IsStoppedWhenItsFileIsOpenedElsewhere) {
  begin();
  EXPECT_FALSE(home.on(StopWriteBack{id(1)}).is_ok()) << "without the turn";
  ask(OpenBegin{"/f"});
  EXPECT_TRUE(home.on(StopWriteBack{id(1)}).is_ok());
  EXPECT_TRUE(home.on(StopWriteBack{id(9)}).is_ok());
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}, false}).is_ok());
  EXPECT_EQ(home.on(GetFile{id(1)}).status().code(), Code::kNotFound);
  EXPECT_FALSE(tell(0, Of::kEnd).is_wanted);
}

TEST_F(WriteBackTest, OfADeletedFileEndsWithItsLastWriter) {
  begin();
  ask(OpenBegin{"/f"});
  ASSERT_TRUE(home.on(SetAside{id(1), true}).is_ok());
  ASSERT_TRUE(home.on(OpenEnd{"/f", false, {}, {}, false}).is_ok());
  EXPECT_FALSE(tell(0, Of::kGivenUp).is_wanted);
  EXPECT_TRUE(tell(3, Of::kGivenUp).is_last);
  const auto reply = close(20);
  EXPECT_TRUE(reply.last && reply.deleted);
}

TEST_F(WriteBackTest, TellsOfTroubleOnceAndOfFailureToTheEnd) {
  begin();
  EXPECT_TRUE(tell(3, Of::kTrouble).is_first_trouble);
  EXPECT_FALSE(tell(0, Of::kTrouble).is_first_trouble);
  const TellWritten given_up{id(1), id(20), 0, Of::kGivenUp, true, "full"};
  EXPECT_FALSE(home.on(given_up)->is_last);
  const WriteBackState last = tell(3, Of::kEnd);
  EXPECT_TRUE(last.is_last && last.has_failed && last.has_no_room);
  EXPECT_EQ(last.trouble, "full");
  // Once more is no end of another one.
  EXPECT_FALSE(tell(3, Of::kEnd).is_last);
}

TEST_F(WriteBackTest, BeginsInTheTurnOfACloseAndOnce) {
  open(11);
  EXPECT_FALSE(home.on(BeginWriteBack{id(1), id(20), {0}}).is_ok());
  ask(CloseBegin{id(1), id(11)});
  EXPECT_FALSE(home.on(BeginWriteBack{id(1), id(20), {}}).is_ok());
  EXPECT_TRUE(home.on(BeginWriteBack{id(1), id(20), {0}}).is_ok());
  EXPECT_FALSE(home.on(BeginWriteBack{id(1), id(21), {0}}).is_ok());
}

}  // namespace
}  // namespace dedup::service
