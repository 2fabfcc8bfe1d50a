// A whole store with one damaged file in it: STORE, a path entry, a mark, a commit record.
#include "store/store.h"

#include "store/files/layout.h"
#include "store/files/path_entries.h"
#include "store/format.h"
#include "store/fs.h"
#include "test/fuzz_formats/targets.h"

namespace dedup::fuzz {
namespace {

const std::string kPath = "/scratch/f";

store::CommitRecord some_record() {
  store::CommitRecord record;
  record.identity = some_id(0);
  record.number = 1;
  record.attempt = some_id(1);
  record.path = kPath;
  record.lineage = {{some_id(2), 1}};
  return record;
}

// A store with one file of one generation and one mark.
const store::Layout kLayout{kDirectory + "/store"};

void make_store() {
  const auto store = store::Store::open(kLayout.root, true);
  require(store.is_ok(), "a store can be made");
  require((*store)->adopt(some_record()).is_ok(), "a record can be adopted");
  require((*store)->put_mark(some_id(3), {some_id(4)}).is_ok(), "a mark can be made");
}

std::vector<std::string> files() {
  return {kLayout.store_file(), kLayout.path_entry(store::path_key(kPath)),
          kLayout.mark(some_id(3)), kLayout.record(some_id(0), some_id(1))};
}

void check_store() {
  const auto store = store::Store::open(kLayout.root, false);
  if (!store.is_ok()) return;
  const auto found = (*store)->find(kPath, some_id(0));
  if (found.is_ok()) {
    for (const auto& record : found->records) {
      require(record.identity == some_id(0), "a record is of the file that it is found for");
    }
  }
  (void)(*store)->list();
  (void)(*store)->newest(some_id(0));
  (void)(*store)->marks();
  (void)(*store)->mark_stores(some_id(3));
}

// The input: which file, whether with its checksum put right, then the file.
void run_store(Input input) {
  Choices choices(input);
  const auto which = choices.number<std::uint8_t>();
  const Input rest = choices.rest();
  make_store();
  Encoder bytes;
  bytes.put_raw(rest.data(), rest.size());
  const bool is_record = (which & 3) == 3;
  if ((which & 4) != 0 && !is_record) store::format::put_checksum(bytes);
  if ((which & 4) != 0 && is_record) {
    const store::Digest digest = store::format::sha256(bytes.bytes());
    bytes.put_raw(digest.data(), digest.size());
  }
  put_file(files()[which & 3], bytes.bytes());
  check_store();
}

std::vector<Bytes> store_seeds() {
  make_store();
  std::vector<Bytes> seeds;
  std::uint8_t which = 0;
  for (const std::string& path : files()) {
    const auto bytes = store::fs::read_file(path);
    require(bytes.is_ok(), "a file of the store can be read");
    const std::size_t checksum = which == 3 ? sizeof(store::Digest) : 8;
    Encoder seed;
    seed.put(static_cast<std::uint8_t>(4 + which++));
    seed.put_raw(bytes->data(), bytes->size() - checksum);
    seeds.push_back(seed.take());
  }
  return seeds;
}

}  // namespace

std::span<const Target> store_targets() {
  static const Target targets[] = {{"store", run_store, store_seeds}};
  return targets;
}

}  // namespace dedup::fuzz
