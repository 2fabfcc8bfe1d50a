// Generations that a store node holds for who has no file open in the job (HoldGeneration).
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "service/messages/store_node.h"
#include "test/unit/store_node_fixture.h"

namespace dedup::service {
namespace {

constexpr ConnectionId kOnlooker = 7, kOther = 8;

class HeldGeneration : public ServiceStoreNodeOnAny {
 protected:
  HoldGeneration hold() const {
    return {random_id(random_), identity_, base_, uuid_, {"/nowhere/%n", template_}};
  }
  void expect_readable(const Id128& ticket, const std::vector<Chunk>& what) {
    const auto read = get_chunks(*node_, ticket, what);
    ASSERT_OK(read);
    for (std::size_t i = 0; i < what.size(); ++i) EXPECT_EQ((*read)[i], what[i].data);
  }
  // The next generation has nothing that those before have.
  std::vector<Chunk> replace_everything() {
    auto what = chunks(3);
    EXPECT_TRUE(put(what).is_ok());
    EXPECT_TRUE(commit(what).is_ok());
    return what;
  }

  mutable Random random_{4};
};

TEST_P(HeldGeneration, IsReadWhateverIsCommittedMeanwhile) {
  ASSERT_OK(attach(true));
  const auto first = replace_everything();
  const HoldGeneration request = hold();
  ASSERT_OK(node_->hold(request, kOnlooker));
  ASSERT_OK(node_->hold(request, kOnlooker));
  const auto digest = base_digest_;
  const auto second = replace_everything();
  replace_everything();

  expect_readable(request.ticket, first);
  const auto shard = node_->on(ReadShard{request.ticket, request.attempt, 0, digest, {3}});
  ASSERT_OK(shard);
  EXPECT_FALSE(shard->blocks.front().bytes.empty());
  const auto places = node_->on(Locate{request.ticket, names(first)});
  ASSERT_OK(places);
  for (const auto& place : places->locations) EXPECT_NE(place.length, 0u);
  // It is that generation alone.
  const auto of_others = get_chunks(*node_, request.ticket, second);
  ASSERT_OK(of_others);
  for (const Bytes& chunk : *of_others) EXPECT_TRUE(chunk.empty());
  // And to the job it is gone.
  const auto of_job = get_chunks(*node_, identity_, first);
  ASSERT_OK(of_job);
  for (const Bytes& chunk : *of_job) EXPECT_TRUE(chunk.empty());
}

TEST_P(HeldGeneration, GoesWhenItIsLetGo) {
  ASSERT_OK(attach(true));
  const auto first = replace_everything();
  const HoldGeneration request = hold();
  ASSERT_OK(node_->hold(request, kOnlooker));
  ASSERT_OK(node_->on(LetGo{request.ticket}));
  ASSERT_OK(node_->on(LetGo{request.ticket}));
  EXPECT_CODE(get_chunks(*node_, request.ticket, first), kInternal);
  replace_everything();
  EXPECT_CODE(node_->hold(request, kOnlooker), kNotFound);
}

TEST_P(HeldGeneration, GoesWithTheConnectionThatItCameOnLast) {
  ASSERT_OK(attach(true));
  const auto first = replace_everything();
  const HoldGeneration request = hold();
  ASSERT_OK(node_->hold(request, kOnlooker));
  ASSERT_OK(node_->hold(request, kOther));
  node_->closed(kOnlooker);
  expect_readable(request.ticket, first);
  node_->closed(kOther);
  EXPECT_CODE(get_chunks(*node_, request.ticket, first), kInternal);
}

TEST_P(HeldGeneration, NeedsNoFileThatIsAttached) {
  ASSERT_OK(attach(true));
  const auto first = replace_everything();
  restart();
  const HoldGeneration request = hold();
  ASSERT_OK(node_->hold(request, kOnlooker));
  expect_readable(request.ticket, first);
}

TEST_P(HeldGeneration, IsNothingThatCanBeChanged) {
  ASSERT_OK(attach(true));
  replace_everything();
  const HoldGeneration request = hold();
  ASSERT_OK(node_->hold(request, kOnlooker));
  EXPECT_CODE(node_->on(OpenSegment{request.ticket}), kInternal);
  EXPECT_CODE(node_->on(Distrust{request.ticket, {}}), kInternal);
  EXPECT_CODE(node_->on(Collect{request.ticket, request.attempt}), kInternal);
}

TEST_P(HeldGeneration, IsNotTakenFromAnotherStoreOrAnotherFile) {
  ASSERT_OK(attach(true));
  replace_everything();
  for (const auto& change : std::vector<std::pair<Code, void (*)(HoldGeneration&)>>{
           {Code::kNotFound, [](HoldGeneration& hold) { hold.store.bytes[0] ^= 1; }},
           {Code::kNotFound, [](HoldGeneration& hold) { hold.attempt.bytes[0] ^= 1; }},
           {Code::kNotFound, [](HoldGeneration& hold) { hold.identity.bytes[0] ^= 1; }},
           {Code::kNotFound, [](HoldGeneration& hold) { hold.store_templates.clear(); }},
           {Code::kArgument, [](HoldGeneration& hold) { hold.ticket = hold.identity; }}}) {
    HoldGeneration request = hold();
    change.second(request);
    EXPECT_EQ(node_->hold(request, kOnlooker).status().code(), change.first);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, HeldGeneration, testing::Bool(), name_of_kind);

}  // namespace
}  // namespace dedup::service
