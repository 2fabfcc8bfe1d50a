#include "store/choose.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "plan/placement.h"

namespace dedup::store {
namespace {

struct Found {
  const CommitRecord* record;
  const StoreReport* report;
};

Status conflict(const std::string& path, const Found& a, const Found& b) {
  return {Code::kConflict, path + ": two generations, and neither was made from the other: " +
                               describe(*a.record) + " on node " + a.report->node_name + ", " +
                               describe(*b.record) + " on node " + b.report->node_name +
                               ". Remove the file from the stores whose generation you do not want "
                               "(dedupctl rm --on NODE)"};
}

// Which of the record's stores are not here, or lack it.
void look_for_stores(const std::vector<StoreReport>& reports, Choice& choice) {
  std::map<Id128, const StoreReport*> by_store;
  for (const StoreReport& report : reports) by_store.emplace(report.store, &report);
  for (const StoreEntry& entry : choice.record.stores) {
    const auto it = by_store.find(entry.uuid);
    if (it == by_store.end()) {
      choice.missing.push_back(entry);
      continue;
    }
    const auto& records = it->second->records;
    const bool has_it = std::any_of(
        records.begin(), records.end(),
        [&](const CommitRecord& record) { return record.attempt == choice.record.attempt; });
    if (!has_it) choice.adopt.push_back(it->second->node);
  }
}

// The newest of `found`, which is not empty, and what it takes to go on from it.
Result<Choice> choose_newest(const std::string& path, const std::vector<Found>& found,
                             const std::vector<StoreReport>& reports, Choice choice) {
  const Found newest = *std::max_element(
      found.begin(), found.end(),
      [](const Found& a, const Found& b) { return a.record->number < b.record->number; });
  for (const Found& other : found) {
    if (other.record->identity != newest.record->identity ||
        !descends_from(*newest.record, *other.record)) {
      return conflict(path, newest, other);
    }
  }
  choice.exists = true;
  choice.record = *newest.record;
  look_for_stores(reports, choice);
  return choice;
}

std::set<Id128> deleted_in(const std::vector<StoreReport>& reports) {
  std::set<Id128> deleted;
  for (const StoreReport& report : reports) {
    deleted.insert(report.deleted.begin(), report.deleted.end());
  }
  return deleted;
}

// What of `record` is left, if that is enough.
Choice choose_cached_as(const CommitRecord& record, const std::vector<StoreReport>& reports) {
  Choice choice;
  choice.exists = true;
  choice.record = record;
  // A commit that was to follow on it, and never counted, is nobody's: the plain file is the file.
  const auto is_other = [&](const CommitRecord& other) {
    return other.identity == record.identity && other.attempt != record.attempt &&
           other.number >= record.number;
  };
  for (const StoreReport& report : reports) {
    if (std::any_of(report.records.begin(), report.records.end(), is_other)) return {};
  }
  look_for_stores(reports, choice);
  // Who has dropped it would get its record back, and nothing of what that names.
  if (!choice.adopt.empty()) return {};
  const std::size_t gone = choice.missing.size();
  return gone < std::max<std::size_t>(choice.record.replication, 1) ? choice : Choice{};
}

// As much of a record as tells its descendants.
CommitRecord named_record(const Placeholder& named) {
  CommitRecord record;
  record.identity = named.identity;
  record.number = named.number;
  record.attempt = named.attempt;
  record.lineage = {{named.session, named.number}};
  return record;
}

}  // namespace

Result<Choice> choose_generation(const std::string& path, const std::vector<StoreReport>& reports) {
  Choice choice;
  const std::set<Id128> deleted = deleted_in(reports);
  std::vector<Found> found;
  for (const StoreReport& report : reports) {
    for (const CommitRecord& record : report.records) {
      if (deleted.contains(record.identity)) {
        choice.drop.push_back({report.node, record.identity});
      } else {
        found.push_back({&record, &report});
      }
    }
  }
  if (found.empty()) return choice;
  return choose_newest(path, found, reports, std::move(choice));
}

Result<Choice> choose_named(const std::string& path, const Placeholder& named,
                            const std::vector<StoreReport>& reports) {
  const CommitRecord oldest = named_record(named);
  std::vector<Found> found;
  for (const StoreReport& report : reports) {
    for (const CommitRecord& record : report.records) {
      if (descends_from(record, oldest)) found.push_back({&record, &report});
    }
  }
  if (!found.empty()) return choose_newest(path, found, reports, {});
  const bool deleted = deleted_in(reports).contains(named.identity);
  // Short, so that MPI leaves room for the stores' directory.
  return Status(Code::kIo, path + ": no store of this job has generation " +
                               std::to_string(named.number) + " of it" +
                               (deleted ? ", which was deleted; it was in " : "; it is in ") +
                               named.store + " of nodes " + list_nodes(named) +
                               ": set dedup_store to that, or remove the file to begin anew");
}

Choice choose_cached(const Stamp& plain, const std::vector<StoreReport>& reports) {
  std::set<Id128> attempts;
  for (const StoreReport& report : reports) {
    for (const CachedNote& note : report.cached) {
      if (is_unchanged(note.plain, plain)) attempts.insert(note.attempt);
    }
  }
  const std::set<Id128> deleted = deleted_in(reports);
  std::map<Id128, const CommitRecord*> found;  // by attempt
  for (const StoreReport& report : reports) {
    for (const CommitRecord& record : report.records) {
      if (!attempts.contains(record.attempt) || deleted.contains(record.identity)) continue;
      found.emplace(record.attempt, &record);
    }
  }
  // Jobs that knew nothing of each other have fetched it: each is that file.
  for (const auto& [attempt, record] : found) {
    Choice choice = choose_cached_as(*record, reports);
    if (choice.exists) return choice;
  }
  return {};
}

Status check_quorum(const Choice& choice) {
  const std::size_t stores = choice.record.stores.size();
  const std::size_t needed = plan::Redundancy::copies(choice.record.replication)
                                 .quorum(static_cast<std::uint32_t>(stores));
  const std::size_t present = stores - choice.missing.size();
  if (present >= needed) return Status::ok();
  return {Code::kIo,
          choice.record.path + ": only " + std::to_string(present) + " of the " +
              std::to_string(stores) + " stores of " + describe(choice.record) +
              " are here, and writing takes at least " + std::to_string(needed) +
              ", since a newer generation may be on the missing ones: " + describe(choice.missing)};
}

std::string describe(const CommitRecord& record) {
  return "generation " + std::to_string(record.number) + " (attempt " + record.attempt.hex() +
         ") of identity " + record.identity.hex();
}

std::string describe(const std::vector<StoreEntry>& stores) {
  if (stores.empty()) return "none";
  std::string text;
  for (const StoreEntry& entry : stores) {
    if (!text.empty()) text += ", ";
    text += "store " + entry.uuid.hex() + " of node " + entry.node;
  }
  return text;
}

}  // namespace dedup::store
