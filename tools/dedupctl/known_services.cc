#include "tools/dedupctl/known_services.h"

#include <algorithm>
#include <ranges>

namespace dedup::ctl {

void KnownServices::add(int teller, const service::JobServices& services) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(told_, services.job, &Told::job);
  told_.push_back({teller, services.job,
                   known == told_.end() ? std::shared_ptr(services.connect()) : known->client});
}

void KnownServices::remove(int teller) {
  const std::lock_guard lock(mutex_);
  std::erase_if(told_, [&](const Told& told) { return told.teller == teller; });
}

std::vector<std::shared_ptr<service::Client>> KnownServices::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<service::Client>> clients;
  for (const Told& told : std::views::reverse(told_)) {
    if (std::ranges::find(clients, told.client) == clients.end()) clients.push_back(told.client);
  }
  return clients;
}

}  // namespace dedup::ctl
