#include "engine/protocol/find_and_attach.h"

#include <algorithm>
#include <optional>

#include "base/fields.h"
#include "base/warn.h"
#include "engine/protocol/at_my_nodes.h"
#include "engine/protocol/fence.h"
#include "engine/protocol/kept_file.h"
#include "engine/protocol/leave.h"
#include "engine/protocol/lost_nodes.h"
#include "engine/protocol/search.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "store/choose.h"
#include "store/real_path.h"
#include "store/replacement.h"
#include "store/series.h"

namespace dedup::engine {
namespace {

// Another job may commit between the search and the locks; then the search is done again.
constexpr int kSearches = 5;

// What rank 0 found out and all ranks need.
struct Decision {
  service::FileInfo info;
  Id128 base;
  bool attach = false;  // nobody in the job has the file yet, or only for reading
  bool create = false;
  bool tidies = false;  // what stands at the real path is of an older generation
  std::vector<NodeIndex> adopt;
  std::vector<store::Leftover> drop;
};

// What rank 0 tells all before any node is asked.
struct Start {
  bool known = false;    // the job has it open
  service::Find wanted;  // else: what is looked for
};

// None, with zeros for ids, if there are no bytes.
Result<store::CommitRecord> record_of(const Bytes& encoded) {
  if (encoded.empty()) return store::CommitRecord{};
  return store::CommitRecord::decode(encoded);
}

class FindAndAttach {
 public:
  FindAndAttach(JobFile& file, const OpenMode& mode, const std::function<Status()>& begin)
      : file_(file), mode_(mode), begin_(begin) {}

  Status run() {
    DEDUP_ASSIGN(kept_, find_kept(file_, mode_.create));
    Status status;
    if (file_.rank() == 0) {
      stop_write_back_elsewhere();
      auto reply = file_.client().call(file_.home, service::OpenBegin{file_.path});
      status = reply.status();
      if (status.is_ok()) begun_ = std::move(*reply);
    }
    const bool has_turn = status.is_ok();
    if (has_turn && file_.rank() == 0) status = check_known();
    Start start{begun_.known, {}};
    if (status.is_ok() && !start.known && file_.rank() == 0) status = look(start.wanted);
    status = file_.ranks().share(status, start);
    // Else all nodes are asked what they have.
    const bool asks_nodes = status.is_ok() && start.known && file_.may_miss_nodes;
    if (asks_nodes) status = check_nodes(file_.client(), file_.ranks());
    if (status.is_ok()) status = find_and_attach(start);
    if (!status.is_ok() && made_empty_) remove_made();
    // The path's turn is given back whatever happened.
    if (!has_turn) return status;
    Status end;
    if (file_.rank() == 0) {
      const service::OpenEnd request{file_.path, status.is_ok(), file_.handle, decision_.info,
                                     file_.writable};
      end = file_.client().call(file_.home, request).status();
    }
    DEDUP_TRY(status);
    file_.had_writers = decision_.info.writable;
    DEDUP_ASSIGN(FileView view, FileView::from(decision_.info));
    file_.set_view(std::move(view));
    const Status begun = end.is_ok() ? begin_() : end;
    status = file_.ranks().agree(begun);
    if (!status.is_ok()) (void)leave(file_, Leaving::kAsItIs);
    return status;
  }

  bool created() const { return decision_.create; }

 private:
  // What stands here may have been renamed while this job writes it back: the write-back has it
  // open by the old name, at which nothing is to be put any more. An error shows in what comes
  // next.
  void stop_write_back_elsewhere() const {
    const auto now = store::look_at(file_.path);
    if (!now.is_ok() || now->kind != store::PathState::Kind::kPlaceholder) return;
    const std::string& before = now->placeholder.path;
    if (before == file_.path || now->is_copy()) return;
    const NodeIndex home = service::file_home(before, file_.nodes());
    const auto begun = file_.client().call(home, service::OpenBegin{before});
    if (!begun.is_ok()) return;
    if (begun->known && begun->info.identity == now->placeholder.identity) {
      (void)file_.client().call(home, service::StopWriteBack{begun->info.identity});
    }
    (void)file_.client().call(home, service::OpenEnd{before, false, {}, {}, false});
  }

  // What this job has open may have been renamed or replaced since: then the path is another file.
  Status check_known() {
    if (!begun_.known) return Status::ok();
    DEDUP_ASSIGN(const store::CommitRecord record, record_of(begun_.info.record));
    const bool is_kept = !record.kept_of.file.is_zero();
    // A file may have the very name that a kept generation of another one has.
    const bool is_wanted = kept_ ? begun_.info.identity == kept_->identity : !is_kept;
    const bool is_it = is_wanted && (begun_.info.real_path == service::FileInfo::RealPath::kNone ||
                                     stands_at_path(begun_.info));
    if (is_it) return Status::ok();
    begun_.known = false;
    begun_.aside.push_back(begun_.info.identity);
    const service::SetAside request{begun_.info.identity, false};
    return file_.client().call(file_.home, request).status();
  }

  Status find_and_attach(Start& start) {
    const bool known = start.known;
    for (int i = 0; i < kSearches; ++i) {
      Decision mine;
      Status status;
      outdated_.reset();
      if (known) {
        if (file_.rank() == 0) status = decide_known(mine);
      } else {
        if (i > 0) {
          if (file_.rank() == 0) status = look(start.wanted);
          DEDUP_TRY(file_.ranks().share(status, start));
        }
        status = search_and_decide(start.wanted, mine);
      }
      mine.tidies = file_.rank() == 0 && is_to_be_tidied(mine.info);
      DEDUP_TRY(file_.ranks().share(status, mine));
      decision_ = std::move(mine);
      if (file_.writable) {
        decision_.info.write_back = std::max(decision_.info.write_back, wanted_write_back());
      }
      decision_.info.has_writer = decision_.info.has_writer || replaces();
      if (!decision_.attach) return Status::ok();
      bool changed = false;
      status = attach(changed);
      std::uint64_t retry = changed ? 1 : 0;
      status = file_.ranks().agree_max(status, retry);
      if (status.is_ok() && retry == 0) {
        if (!decision_.tidies) return Status::ok();
        status = file_.ranks().share(tidy_real_path());
        if (status.is_ok()) return status;
        // Another job has gone on from there meanwhile.
        if (status.code() == Code::kConflict && !known) status = Status::ok();
      }
      if (!known) detach();
      DEDUP_TRY(status);
    }
    return {Code::kFileInUse, file_.path + ": other jobs commit to the file all the time"};
  }

  // The job has it open already: at most the locks for writing are missing.
  Status decide_known(Decision& out) {
    if (exclusive()) return exists();
    out.info = begun_.info;
    DEDUP_ASSIGN(const FileView view, FileView::from(begun_.info));
    out.base = view.base();
    if (file_.writable && !out.info.writable) {
      store::Choice choice;
      if (view.committed) choice.record = view.committed->record;
      for (std::size_t i = file_.nodes(); i < out.info.stores.size(); ++i) {
        choice.missing.push_back({out.info.stores[i].uuid, out.info.stores[i].node});
      }
      if (out.info.real_path != service::FileInfo::RealPath::kNone) {
        if (replaces()) DEDUP_TRY(store::check_replaceable(file_.path));
      } else if (view.committed) {
        DEDUP_TRY(store::check_quorum(choice));
      }
      out.attach = true;
      DEDUP_TRY(make_writable(out.info));
    }
    return Status::ok();
  }

  // On rank 0: what stands at the real path, which says what the stores are to be asked for.
  Status look(service::Find& wanted) {
    if (kept_) {
      wanted = {file_.path, kept_->identity, file_.hints.store, {}, kept_->file, kept_->attempt};
      return Status::ok();
    }
    DEDUP_ASSIGN(state_, replaces() ? store::settle_path(file_.path) : store::look_at(file_.path));
    find_donor(state_);
    wanted = {file_.path, state_.placeholder.identity, file_.hints.store};
    if (donor_) wanted.donor = donor_->identity;
    if (plain_donor_) {
      wanted.plain_donor = plain_donor_->path;
      wanted.plain_donor_stamp = plain_donor_->stamp;
    }
    return Status::ok();
  }

  // Collective.
  Status search_and_decide(const service::Find& wanted, Decision& mine) {
    DEDUP_ASSIGN(SearchResult found, search(file_.client(), file_.ranks(), wanted));
    if (file_.rank() != 0) return Status::ok();
    if (kept_) return decide_kept(std::move(found), mine);
    if (file_.writable) DEDUP_TRY(check_stores_differ(found, file_.hints.store));
    hide(found, begun_.aside);
    DEDUP_ASSIGN(const bool shared, is_shared(found, file_.path));
    DEDUP_TRY(shared ? decide_by_real_path(found, std::move(state_), mine)
                     : decide_by_path(found, mine));
    return choose_homes(mine.info);
  }

  // Files that share have one key: so blocks of their recipes are on the same nodes. Of small ones
  // there are many, and little to share: each has homes of its own.
  static Status choose_homes(service::FileInfo& info) {
    const Bytes& origin = info.record.empty() ? info.donor : info.record;
    Id128 key = info.key;  // nobody else has that of a file that shares with none
    if (!origin.empty()) {
      DEDUP_ASSIGN(const store::CommitRecord record, record_of(origin));
      key = is_small(record) ? Id128{} : record.key;
    }
    info.home_seed = key.is_zero() ? info.identity : key;
    return Status::ok();
  }

  // No path leads to a kept generation: the stores find it by its identity.
  Status decide_kept(SearchResult found, Decision& mine) {
    hide(found, begun_.aside);
    for (store::StoreReport& report : found.reports) {
      std::erase_if(report.records, [&](const store::CommitRecord& record) {
        return record.identity != kept_->identity;
      });
    }
    begin_info(found, mine);
    DEDUP_ASSIGN(const store::Choice choice, store::choose_generation(file_.path, found.reports));
    if (!choice.exists && found.makes_kept) {
      return {Code::kFileInUse, file_.path + ": another job is just keeping it: try again"};
    }
    if (!choice.exists) {
      return {Code::kIo, file_.path +
                             ": this generation was kept, but no store of this job has it: "
                             "it was removed or given up, or is on other nodes"};
    }
    take(choice, found, mine);
    if (file_.writable) DEDUP_TRY(make_writable(mine.info));
    if (file_.writable) DEDUP_TRY(store::check_quorum(choice));
    return choose_homes(mine.info);
  }

  // On rank 0: with whom a file that is new shares, as far as names tell.
  void find_donor(const store::PathState& state) {
    using Kind = store::PathState::Kind;
    donor_.reset();
    plain_donor_.reset();
    const std::string& base = file_.hints.base;
    const bool is_new = state.kind == Kind::kNothing
                            ? mode_.create
                            : state.kind == Kind::kPlain && state.stamp.size == 0;
    if (!file_.writable || !is_new || base == "none") return;
    if (base == "auto") {
      store::InSeries newest = store::newest_in_series(file_.path);
      donor_ = std::move(newest.placeholder);
      plain_donor_ = std::move(newest.plain);
      return;
    }
    const auto named = store::look_at(base);
    if (named.is_ok() && named->kind == Kind::kPlaceholder) {
      donor_ = named->placeholder;
    } else if (named.is_ok() && named->kind == Kind::kPlain && named->stamp.size > 0) {
      plain_donor_ = store::PlainAt{base, named->stamp};
    } else {
      warn(file_.path + ": shares nothing with " + base +
           ", as dedup_base has it: no file of the stores is there");
    }
  }

  // Its record as the stores have it; none if they do not. What is cached may go any time: only if
  // all stores have it still.
  Bytes donor_of(const SearchResult& found) const {
    for (const store::CommitRecord& record : found.donors) {
      const bool is_cached = plain_donor_ && record.path == plain_donor_->path &&
                             !(donor_ && record.attempt == donor_->attempt);
      const std::set<Id128>& stores = found.donor_stores.at(record.attempt);
      const auto has_it = [&](const store::StoreEntry& entry) {
        return stores.contains(entry.uuid);
      };
      if (is_cached && std::all_of(record.stores.begin(), record.stores.end(), has_it)) {
        return record.encode();
      }
    }
    for (const store::CommitRecord& record : found.donors) {
      if (donor_ && record.attempt == donor_->attempt) return record.encode();
    }
    if (plain_donor_ && file_.hints.base != "auto") {
      warn(file_.path + ": shares nothing with " + plain_donor_->path +
           ", as dedup_base has it: the stores do not have it");
    }
    return {};
  }

  void begin_info(const SearchResult& found, Decision& out) const {
    for (const std::string& text : found.damaged) {
      warn(file_.path + ": " + text);
    }
    out.attach = true;
    out.info.path = file_.path;
    out.info.store_template = file_.hints.store;
    out.info.stores = found.stores;
  }

  static void take(const store::Choice& choice, const SearchResult& found, Decision& out) {
    out.info.identity = choice.record.identity;
    out.info.record = choice.record.encode();
    out.info.size = choice.record.size;
    out.info.stores = store_table(found.stores, choice.record);
    out.base = choice.record.attempt;
    out.adopt = choice.adopt;
  }

  service::WriteBack wanted_write_back() const {
    switch (file_.hints.flush) {
      case hints::Flush::kClose:
        return service::WriteBack::kAtClose;
      case hints::Flush::kBackground:
        return service::WriteBack::kInBackground;
      case hints::Flush::kNone:
        break;
    }
    return service::WriteBack::kNone;
  }

  // Whether what stands at the path may be replaced.
  bool replaces() const { return file_.writable && !file_.fetches; }
  bool exclusive() const { return mode_.create && mode_.exclusive; }

  // All nodes share the file system: what stands at the path decides.
  Status decide_by_real_path(const SearchResult& found, store::PathState state, Decision& out) {
    using Kind = store::PathState::Kind;
    begin_info(found, out);
    if (state.kind == Kind::kNoDirectory) return no_directory(found);
    if (state.kind == Kind::kNothing) {
      if (!mode_.create) {
        return {Code::kNoSuchFile, file_.path + ": no such file"};
      }
      auto made = store::create_empty(file_.path);
      made_empty_ = made.is_ok();
      // Somebody else was faster.
      if (made.status().code() == Code::kFileExists && !exclusive()) {
        made = store::look_at(file_.path);
      }
      DEDUP_TRY(made.status());
      state = std::move(*made);
    } else if (exclusive() && !made_empty_) {
      return exists();
    }
    if (replaces()) DEDUP_TRY(store::check_replaceable(file_.path));
    if (file_.fetches && state.kind != Kind::kPlain) {
      return {Code::kConflict, file_.path + ": another job has put it into the stores"};
    }
    if (state.kind == Kind::kPlain) {
      const store::Choice cached = store::choose_cached(state.stamp, found.reports);
      if (cached.exists && cached.record.size == state.stamp.size) {
        take(cached, found, out);
      } else {
        out.info.identity = Id128::random();
        out.info.size = state.stamp.size;
        if (state.stamp.size == 0) out.info.donor = donor_of(found);
      }
      out.info.real_path = service::FileInfo::RealPath::kPlain;
      out.info.plain = state.stamp;
    } else {
      if (state.is_copy() && file_.writable) {
        return {Code::kUnsupported,
                file_.path + ": is a copy of the placeholder at " + state.placeholder.path +
                    ", which can only be read; to write to a copy of the file, copy its data"};
      }
      DEDUP_ASSIGN(const store::Choice choice,
                   store::choose_named(file_.path, state.placeholder, found.reports));
      if (state.is_copy() && choice.record.attempt != state.placeholder.attempt) {
        return {Code::kIo, file_.path + ": is a copy of the placeholder at " +
                               state.placeholder.path + ", which has been written to since: " +
                               store::describe(state.placeholder) + " is no more"};
      }
      take(choice, found, out);
      out.info.real_path = service::FileInfo::RealPath::kPlaceholder;
      if (choice.record.attempt != state.placeholder.attempt) outdated_ = std::move(state);
    }
    if (file_.writable) DEDUP_TRY(make_writable(out.info));
    return Status::ok();
  }

  Status no_directory(const SearchResult& found) const {
    std::string text = file_.path + ": its directory is not there";
    for (const store::StoreReport& report : found.reports) {
      if (report.records.empty()) continue;
      text += "; the stores have " + store::describe(report.records.front()) +
              ": is the file system mounted?";
      break;
    }
    return {Code::kNoSuchFile, text};
  }

  // On rank 0.
  bool is_to_be_tidied(const service::FileInfo& info) const {
    return outdated_ && info.writable && !file_.fetches &&
           info.real_path != service::FileInfo::RealPath::kNone;
  }

  // On rank 0, once the file is attached: what a killed job left at the real path.
  Status tidy_real_path() {
    if (file_.rank() != 0) return Status::ok();
    (void)store::remove_leftovers(store::fs::directory_of(file_.path));
    DEDUP_ASSIGN(const auto record, store::CommitRecord::decode(decision_.info.record));
    return renew_placeholder(file_.path, *outdated_, record, file_.hints.store);
  }

  // The open failed after it made the file.
  void remove_made() {
    const auto now = store::look_at(file_.path);
    const bool still_empty =
        now.is_ok() && now->kind == store::PathState::Kind::kPlain && now->stamp.size == 0;
    if (still_empty) (void)store::fs::remove_file(file_.path);
  }

  // The nodes share no file system there: the stores find the file by its path.
  Status decide_by_path(const SearchResult& found, Decision& out) {
    begin_info(found, out);
    DEDUP_ASSIGN(store::Choice choice, store::choose_generation(file_.path, found.reports));
    out.drop = choice.drop;
    if (!choice.exists) {
      if (!mode_.create) {
        return {Code::kNoSuchFile, file_.path + ": no such file in the stores of this job's " +
                                       std::to_string(file_.nodes()) + " nodes (" +
                                       file_.hints.store + ")"};
      }
      out.create = true;
      out.info.identity = Id128::random();
    } else {
      if (exclusive()) return exists();
      if (file_.writable) {
        DEDUP_TRY(store::check_quorum(choice));
      } else if (const Status quorum = store::check_quorum(choice); !quorum.is_ok()) {
        warn(quorum.message());
      }
      take(choice, found, out);
    }
    if (file_.writable) DEDUP_TRY(make_writable(out.info));
    return Status::ok();
  }

  Status make_writable(service::FileInfo& info) const {
    info.writable = true;
    // None as long as nothing is committed.
    DEDUP_ASSIGN(const store::CommitRecord record, record_of(info.record));
    if (!record.kept_of.file.is_zero() && !file_.heals) {
      return {Code::kReadOnly, file_.path + ": a generation that is kept can only be read"};
    }
    info.session = continues_session(record) ? begun_.ended.session : Id128::random();
    DEDUP_ASSIGN(const store::CommitRecord donor, record_of(info.donor));
    info.key = record.attempt.is_zero() ? donor.key : record.key;
    if (info.key.is_zero()) info.key = Id128::random();
    return Status::ok();
  }

  // Nobody has written since this job did, and the last that it tried is what was committed.
  bool continues_session(const store::CommitRecord& committed) const {
    return !committed.lineage.empty() && committed.lineage.back() == begun_.ended;
  }

  Status exists() const {
    return {Code::kFileExists, file_.path + ": the file is there already (MPI_MODE_EXCL)"};
  }

  // Leftovers first, then the locks, then what a broken commit left undone. `changed`: a store has
  // another generation by now than the search found.
  Status attach(bool& changed) {
    Status status = drop_leftovers();
    // Of several jobs that would write, the one that gets the first store's lock gets the others':
    // so one of them succeeds.
    std::vector<NodeIndex> others;
    const NodeIndex first = first_store();
    for (NodeIndex n = 0; n < file_.nodes(); ++n) {
      if (speak_for(n) && n != first) others.push_back(n);
    }
    if (decision_.info.writable) {
      if (status.is_ok() && speak_for(first)) status = attach_at({first}, changed);
      std::uint64_t any_changed = changed ? 1 : 0;
      DEDUP_TRY(file_.ranks().agree_max(status, any_changed));
      if (any_changed != 0) return Status::ok();
    } else if (speak_for(first)) {
      others.push_back(first);
    }
    DEDUP_TRY(status);
    DEDUP_TRY(attach_at(others, changed));
    for (const NodeIndex node : decision_.adopt) {
      if (!speak_for(node) || changed) continue;
      const Status adopted =
          file_.client()
              .call(node, service::Adopt{decision_.info.identity, decision_.info.record})
              .status();
      // By a job that commits meanwhile: there is a newer generation, or will be.
      const bool is_overtaken = !decision_.info.writable && adopted.code() == Code::kFileInUse;
      changed = changed || is_overtaken;
      if (!is_overtaken) DEDUP_TRY(adopted);
    }
    return Status::ok();
  }

  Status drop_leftovers() {
    for (const store::Leftover& leftover : decision_.drop) {
      if (!speak_for(leftover.node)) continue;
      const service::Drop request{decision_.info.store_template, leftover.identity, {}};
      DEDUP_TRY(file_.client().call(leftover.node, request).status());
    }
    return Status::ok();
  }

  // The node of this job whose store comes first in an order that other jobs use, too.
  NodeIndex first_store() const {
    const auto& stores = decision_.info.stores;
    const auto end = stores.begin() + file_.nodes();
    const auto first = std::min_element(
        stores.begin(), end,
        [](const service::StoreRef& a, const service::StoreRef& b) { return a.uuid < b.uuid; });
    return static_cast<NodeIndex>(first - stores.begin());
  }

  Status attach_at(const std::vector<NodeIndex>& nodes, bool& changed) {
    DEDUP_ASSIGN(const store::CommitRecord donor, record_of(decision_.info.donor));
    std::vector<std::pair<NodeIndex, service::Client::Pending<service::Attach>>> pending;
    for (const NodeIndex n : nodes) {
      const service::Attach request{decision_.info.identity,
                                    file_.path,
                                    decision_.info.store_template,
                                    decision_.base,
                                    decision_.info.writable,
                                    decision_.create || decision_.info.writable,
                                    decision_.info.real_path == service::FileInfo::RealPath::kNone,
                                    donor.identity,
                                    donor.attempt};
      pending.emplace_back(n, file_.client().start(n, request));
    }
    Status status;
    for (auto& [node, p] : pending) {
      const auto reply = p.wait();
      if (!reply.is_ok()) {
        if (status.is_ok()) status = reply.status();
      } else if (reply->overtaken || newer(node, reply->newest)) {
        changed = true;
      }
    }
    return status;
  }

  // Stores that took part in the base must still have it as their newest; others may have an older
  // one, which the choice has seen.
  bool newer(NodeIndex node, const Id128& newest) const {
    if (newest == decision_.base || newest.is_zero()) return false;
    if (decision_.base.is_zero()) return true;
    for (const NodeIndex lacking : decision_.adopt) {
      if (lacking == node) return false;
    }
    const auto record = store::CommitRecord::decode(decision_.info.record);
    if (!record.is_ok()) return true;
    for (const store::StoreEntry& entry : record->stores) {
      if (entry.uuid == decision_.info.stores[node].uuid) return true;
    }
    return false;
  }

  void detach() {
    // A node that could not be attached has nothing to detach.
    (void)at_my_nodes(file_, service::Detach{decision_.info.identity, false, {}});
    (void)file_.ranks().agree(Status::ok());
  }

  bool speak_for(NodeIndex node) const { return file_.ranks().speaks_for(node); }

  JobFile& file_;
  OpenMode mode_;
  const std::function<Status()>& begin_;
  std::optional<KeptFile> kept_;
  service::OpenBeginReply begun_;              // on rank 0
  store::PathState state_;                     // likewise: of the real path
  bool made_empty_ = false;                    // likewise: at the real path
  std::optional<store::PathState> outdated_;   // likewise: names an older generation
  std::optional<store::Placeholder> donor_;    // likewise: of a file to share with
  std::optional<store::PlainAt> plain_donor_;  // likewise: of one that may be cached
  Decision decision_;
};

}  // namespace

Status find_and_attach(JobFile& file, const OpenMode& mode, const std::function<Status()>& begin,
                       bool& created) {
  FindAndAttach open(file, mode, begin);
  DEDUP_TRY(open.run());
  created = open.created();
  return Status::ok();
}

}  // namespace dedup::engine
