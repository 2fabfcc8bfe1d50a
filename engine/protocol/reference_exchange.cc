#include "engine/protocol/reference_exchange.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/fields.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kReferencesAtOnce = 32768;

using ToNode = std::pair<NodeIndex, service::References>;
using FromNode = std::pair<NodeIndex, std::vector<std::uint8_t>>;

bool lacks_something(std::span<const std::uint8_t> lacking) {
  return std::find(lacking.begin(), lacking.end(), 1) != lacking.end();
}

// Takes what others are told of the same attempt along.
void append(service::References& all, service::References more) {
  const auto before = static_cast<std::uint32_t>(all.placements.size());
  std::move(more.placements.begin(), more.placements.end(), std::back_inserter(all.placements));
  for (service::Reference& chunk : more.chunks) {
    chunk.placement += before;
    all.chunks.push_back(chunk);
  }
  all.dropped += more.dropped;
}

Status impossible() {
  return {Code::kInternal, "a rank sent references that cannot be"};
}

// What the ranks that were asked say. `asked`: of how many chunks each node was.
Status take(const std::vector<Post>& posts, const std::map<NodeIndex, std::size_t>& asked,
            LackingByNode& lacking) {
  for (const Post& post : posts) {
    auto items = decoded<std::vector<FromNode>>(post.what);
    if (!items) return impossible();
    for (auto& [node, flags] : *items) {
      const auto count = asked.find(node);
      const bool is_answer = count != asked.end() && count->second == flags.size();
      if (!is_answer) return impossible();
      lacking[node] = std::move(flags);
    }
  }
  return Status::ok();
}

}  // namespace

Result<LackingByNode> ask_nodes(service::Client& client, const ReferencesByNode& requests) {
  std::vector<service::Client::Pending<service::References>> pending;
  for (const auto& [node, request] : requests) pending.push_back(client.start(node, request));
  Status status;
  LackingByNode lacking;
  std::size_t next = 0;
  for (const auto& [node, request] : requests) {
    auto reply = pending[next++].wait();
    if (!reply.is_ok()) {
      status = reply.status();
    } else if (reply->missing.size() != request.chunks.size()) {
      status = Status(Code::kInternal, "a node answered for other chunks");
    } else {
      lacking[node] = std::move(reply->missing);
    }
  }
  DEDUP_TRY(status);
  return lacking;
}

// To each node as few requests as hold it all.
Status ReferenceExchange::bring(const std::vector<Post>& posts, std::vector<Part>& parts,
                                LackingByNode& lacking) const {
  ReferencesByNode requests;
  const auto send = [&](ReferencesByNode some) -> Status {
    DEDUP_ASSIGN(const LackingByNode replies, ask_nodes(file_.client(), some));
    for (const auto& [node, flags] : replies) {
      std::vector<std::uint8_t>& all = lacking[node];
      all.insert(all.end(), flags.begin(), flags.end());
    }
    return Status::ok();
  };
  std::map<NodeIndex, std::size_t> told;
  for (const Post& post : posts) {
    auto items = decoded<std::vector<ToNode>>(post.what);
    if (!items) return impossible();
    for (auto& [node, request] : *items) {
      if (node >= file_.nodes() || !file_.ranks().speaks_for(node)) return impossible();
      const std::size_t count = request.chunks.size();
      parts.push_back({post.from, node, static_cast<std::uint32_t>(told[node]),
                       static_cast<std::uint32_t>(count)});
      told[node] += count;
      const auto [entry, is_new] = requests.try_emplace(node);
      if (is_new) {
        entry->second = std::move(request);
      } else {
        append(entry->second, std::move(request));
      }
      if (entry->second.chunks.size() < kReferencesAtOnce) continue;
      ReferencesByNode one;
      one.insert(requests.extract(entry));
      DEDUP_TRY(send(std::move(one)));
    }
  }
  return send(std::move(requests));
}

Result<ReferenceExchange::Answer> ReferenceExchange::ask(const Status& mine,
                                                         ReferencesByNode requests) const {
  const Ranks& ranks = file_.ranks();
  Status status = mine;
  std::vector<Part> parts;
  LackingByNode lacking;
  std::map<NodeIndex, std::size_t> asked;
  if (grid_.is_member()) {
    std::map<int, std::vector<ToNode>> by_rank;
    if (status.is_ok()) {
      for (auto& [node, request] : requests) {
        asked[node] = request.chunks.size();
        by_rank[ranks.speaker_for(node)].emplace_back(node, std::move(request));
      }
    }
    const auto posts = grid_.deliver(posts_of(ranks.rank(), by_rank));
    if (status.is_ok()) status = posts.status();
    if (status.is_ok()) status = bring(*posts, parts, lacking);
  }
  const bool lacks = std::any_of(lacking.begin(), lacking.end(),
                                 [](const auto& entry) { return lacks_something(entry.second); });
  std::uint64_t any_lacks = lacks ? 1 : 0;
  DEDUP_TRY(ranks.agree_max(status, any_lacks, Waiting::kPatient));
  Answer answer;
  answer.lack_nothing = any_lacks == 0;
  if (answer.lack_nothing || !grid_.is_member()) return answer;
  std::map<int, std::vector<FromNode>> by_rank;
  for (const Part& part : parts) {
    const auto flags = std::span(lacking[part.node]).subspan(part.first, part.count);
    if (!lacks_something(flags)) continue;
    by_rank[static_cast<int>(part.from)].emplace_back(
        part.node, std::vector<std::uint8_t>(flags.begin(), flags.end()));
  }
  const auto posts = grid_.deliver(posts_of(ranks.rank(), by_rank));
  answer.heard = posts.is_ok() ? take(*posts, asked, answer.lacking) : posts.status();
  return answer;
}

}  // namespace dedup::engine
