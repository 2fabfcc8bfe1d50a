// store_walk [--content FILE] STORE...: what the stores of a run really hold, as JSON on standard
// output. For tests: it opens every store with the store library alone (no service, no MPI), reads
// every chunk of the newest generation of every file wherever it should be, hashes it again, and
// lists what is there besides. Nobody may have the stores open meanwhile. With --content the bytes
// of the newest generation go to FILE (there must be one file in the stores).
//
// {"stores": [{"directory", "uuid", "files": N}],
//  "files": [{"identity", "path", "generation", "attempt", "size", "replication", "fingerprint",
//    "chunk_size", "stores": [node's name], "missing": [node's name], "behind": [node's name],
//    "shards": [sound copies], "unreadable_shards": [number],
//    "chunks": [{"fingerprint", "length", "named": [node], "held": [node], "stripe": id or null}],
//    "stripes": {id: {"data", "parities", "nodes": [node or null], "sound": [slot]}},
//    "zero_bytes", "chunk_bytes", "problems": [text],
//    "on_store": {node: {"twice": [fingerprint], "again": [fingerprint], "chunks",
//      "segment_bytes", "live_bytes", "dead_segments", "cut_segments", "logs",
//      "other_attempts"}}}]}
//
// "sound" are the slots of a stripe of which a store has everything: tables name the chunks that
// they should, the chunks are there, and parities are what the units give, computed here once more.
//
// "twice" and "again" are chunks that stand in a store's segments more than once: "again" if the
// one in use is in the newest of the segments.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hasher.h"
#include "base/piece.h"
#include "plan/stripe_content.h"
#include "store/files/layout.h"
#include "store/files/segment_file.h"
#include "store/files/shard_file.h"
#include "store/fs.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/store.h"

namespace dedup::store {
namespace {

Layout layout_of(const Store& store) {
  return {store.directory()};
}

// In whatever tier.
Result<std::unique_ptr<SegmentFileReader>> open_segment(const Store& store, const Id128& identity,
                                                        std::uint64_t number) {
  DEDUP_ASSIGN(const auto tiers, store.tiers());
  Result<std::unique_ptr<SegmentFileReader>> opened = Status(Code::kNoSuchFile, "no tier");
  for (const TierSpace& tier : tiers) {
    opened = SegmentFileReader::open(Layout{tier.directory}.segment(identity, number));
    if (opened.status().code() != Code::kNoSuchFile) break;
  }
  return opened;
}

using Json = nlohmann::json;

struct Walked {
  std::unique_ptr<Store> store;
  std::vector<CommitRecord> records;
};

// A chunk that the recipe refers to.
struct Chunk {
  std::uint32_t length = 0;
  std::set<NodeIndex> named;  // holders by the recipe
  std::optional<Id128> stripe;
  std::set<NodeIndex> held;  // stores that have it, sound
};

// A stripe of the recipe's chunks, as their placements say.
struct Stripe {
  plan::StripeUnit shape;                            // of its unit 0
  std::map<unsigned, std::set<Fingerprint>> chunks;  // of the recipe, by unit
};

// What a parity is, by doc/format.md: arithmetic in GF(2^8) with x^8 + x^4 + x^3 + x^2 + 1, one
// byte after the other.
class Parities {
 public:
  // Of units that are as long as the longest, which zeros make up for.
  static Bytes of(const std::vector<Bytes>& units, unsigned parities, unsigned number) {
    const auto k = static_cast<unsigned>(units.size());
    Bytes out;
    for (const Bytes& unit : units) out.resize(std::max(out.size(), unit.size()));
    for (unsigned u = 0; u < k; ++u) {
      const std::uint8_t factor =
          parities == 1 ? 1 : inverse(static_cast<std::uint8_t>((k + number) ^ u));
      std::array<std::uint8_t, 256> times;
      for (unsigned x = 0; x < times.size(); ++x) {
        times[x] = product(factor, static_cast<std::uint8_t>(x));
      }
      for (std::size_t i = 0; i < units[u].size(); ++i) {
        out[i] ^= static_cast<std::byte>(times[static_cast<std::uint8_t>(units[u][i])]);
      }
    }
    return out;
  }

 private:
  static std::uint8_t product(std::uint8_t a, std::uint8_t b) {
    unsigned sum = 0;
    unsigned shifted = a;
    for (; b != 0; b >>= 1) {
      if ((b & 1) != 0) sum ^= shifted;
      shifted <<= 1;
      if (shifted > 0xff) shifted ^= 0x11d;
    }
    return static_cast<std::uint8_t>(sum);
  }
  static std::uint8_t inverse(std::uint8_t a) {
    std::uint8_t b = 1;
    while (product(a, b) != 1) ++b;
    return b;
  }
};

class FileWalk {
 public:
  FileWalk(const CommitRecord& record, const std::vector<Walked>& stores) : record_(record) {
    for (std::size_t i = 0; i < record.stores.size(); ++i) {
      const auto it = std::find_if(stores.begin(), stores.end(), [&](const Walked& walked) {
        return walked.store->uuid() == record.stores[i].uuid;
      });
      stores_.push_back(it == stores.end() ? nullptr : it->store.get());
    }
  }

  Json walk(std::vector<Block>* content) {
    Json out;
    out["identity"] = record_.identity.hex();
    out["path"] = record_.path;
    out["generation"] = record_.number;
    out["attempt"] = record_.attempt.hex();
    out["size"] = record_.size;
    out["replication"] = record_.replication;
    out["chunk_size"] = record_.chunk_size;
    out["fingerprint"] = record_.fingerprint;
    out["stores"] = out["missing"] = out["behind"] = Json::array();
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      out["stores"].push_back(record_.stores[i].node);
      if (stores_[i] == nullptr) {
        out["missing"].push_back(record_.stores[i].node);
        continue;
      }
      const auto newest = stores_[i]->newest(record_.identity);
      if (!newest.is_ok() || newest->attempt != record_.attempt) {
        out["behind"].push_back(record_.stores[i].node);
      }
    }
    read_shards(out, content);
    Json on_store = Json::object();
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      if (stores_[i] != nullptr) {
        on_store[record_.stores[i].node] = read_store(static_cast<NodeIndex>(i));
      }
    }
    out["on_store"] = on_store;
    out["stripes"] = Json::object();
    for (const auto& [id, stripe] : stripes_) out["stripes"][id.hex()] = check_stripe(stripe);
    for (std::size_t i = 0; i < stores_.size(); ++i) {
      if (stores_[i] != nullptr) check_dead(static_cast<NodeIndex>(i));
    }
    out["zero_bytes"] = zero_bytes_;
    std::uint64_t chunk_bytes = 0;
    Json chunks = Json::array();
    for (const auto& [fingerprint, chunk] : chunks_) {
      chunk_bytes += chunk.length;
      chunks.push_back({{"fingerprint", fingerprint.hex()},
                        {"length", chunk.length},
                        {"named", names(chunk.named)},
                        {"held", names(chunk.held)},
                        {"stripe", chunk.stripe ? Json(chunk.stripe->hex()) : Json()}});
    }
    out["chunks"] = std::move(chunks);
    out["chunk_bytes"] = chunk_bytes;
    out["problems"] = problems_;
    return out;
  }

  // A chunk's bytes from any store that has it.
  bool read_chunk(const Fingerprint& fingerprint, Bytes& out) const {
    const auto chunk = chunks_.find(fingerprint);
    if (chunk == chunks_.end()) return false;
    return std::any_of(chunk->second.held.begin(), chunk->second.held.end(),
                       [&](NodeIndex node) { return read_from(node, fingerprint, out); });
  }

 private:
  // A chunk of a store, or a part of a stripe.
  bool read_from(NodeIndex node, const Fingerprint& fingerprint, Bytes& out) const {
    const auto store = in_use_.find(node);
    if (store == in_use_.end()) return false;
    const auto entry = store->second.find(fingerprint);
    if (entry == store->second.end()) return false;
    const auto& readers = readers_.at(node);
    const auto segment = readers.find(entry->second.segment);
    if (segment == readers.end()) return false;
    out.resize(entry->second.length);
    return segment->second->read(entry->second, fingerprint, out).is_ok();
  }

  Json check_stripe(const Stripe& stripe) {
    const plan::StripeUnit& shape = stripe.shape;
    const std::string id = "stripe " + shape.stripe.hex();
    std::vector<bool> is_sound(shape.nodes.size());
    std::vector<plan::UnitChunks> tables(shape.data);
    std::vector<Bytes> units(shape.data);
    for (unsigned slot = 0; slot < shape.data; ++slot) {
      if (!is_given(shape.nodes[slot])) continue;
      const std::string where = id + ", unit " + std::to_string(slot) + ": ";
      const auto chunks = stripe.chunks.find(slot);
      const Status status = read_unit(shape, slot, tables[slot], units[slot]);
      if (!status.is_ok()) problem(where + status.message());
      is_sound[slot] = status.is_ok();
      if (!status.is_ok() || chunks == stripe.chunks.end()) continue;
      for (const Fingerprint& fingerprint : chunks->second) {
        if (std::any_of(tables[slot].begin(), tables[slot].end(),
                        [&](const auto& chunk) { return chunk.fingerprint == fingerprint; })) {
          continue;
        }
        problem(where + "its table lacks chunk " + fingerprint.hex());
        is_sound[slot] = false;
      }
    }
    for (unsigned slot = shape.data; slot < shape.nodes.size(); ++slot) {
      if (!is_given(shape.nodes[slot])) continue;
      const Status status = check_parity(shape, slot, is_sound, tables, units);
      if (!status.is_ok()) {
        problem(id + ", parity " + std::to_string(slot - shape.data) + ": " + status.message());
      }
      is_sound[slot] = status.is_ok();
    }
    Json out = {{"data", shape.data},
                {"parities", shape.nodes.size() - shape.data},
                {"nodes", Json::array()},
                {"sound", Json::array()}};
    for (unsigned slot = 0; slot < shape.nodes.size(); ++slot) {
      const NodeIndex node = shape.nodes[slot];
      out["nodes"].push_back(node < record_.stores.size() ? Json(record_.stores[node].node)
                                                          : Json());
      if (is_sound[slot]) out["sound"].push_back(slot);
    }
    return out;
  }

  bool is_given(NodeIndex node) const { return node < stores_.size() && stores_[node] != nullptr; }

  // What a slot's node has of a stripe beside chunks is in use.
  Status read_part(const plan::StripeUnit& shape, plan::Part part, unsigned slot, Bytes& out) {
    const Fingerprint name = plan::part_name(shape.stripe, part, slot);
    needed_[shape.nodes[slot]].insert(name);
    if (read_from(shape.nodes[slot], name, out)) return Status::ok();
    return {Code::kCorrupt, part == plan::Part::kParity ? "cannot be read" : "has no table"};
  }

  Status read_unit(const plan::StripeUnit& shape, unsigned slot, plan::UnitChunks& table,
                   Bytes& unit) {
    Bytes bytes;
    DEDUP_TRY(read_part(shape, plan::Part::kUnitTable, slot, bytes));
    auto decoded = plan::decode_stripe_table(bytes, 1);
    if (!decoded) return {Code::kCorrupt, "its table cannot be understood"};
    table = std::move(decoded->front());
    Status status;
    for (const NamedChunk& chunk : table) {
      needed_[shape.nodes[slot]].insert(chunk.fingerprint);
      const bool is_read = read_from(shape.nodes[slot], chunk.fingerprint, bytes);
      const auto holds = check_.holds(chunk.fingerprint, bytes);
      if (!is_read || bytes.size() != chunk.length || !holds.is_ok() || !*holds) {
        status = {Code::kCorrupt, "its chunk " + chunk.fingerprint.hex() + " is missing or bad"};
      }
      unit.insert(unit.end(), bytes.begin(), bytes.end());
    }
    return status;
  }

  Status check_parity(const plan::StripeUnit& shape, unsigned slot,
                      const std::vector<bool>& is_sound,
                      const std::vector<plan::UnitChunks>& tables,
                      const std::vector<Bytes>& units) {
    Bytes table;
    Bytes parity;
    const Status has_table = read_part(shape, plan::Part::kWholeTable, slot, table);
    DEDUP_TRY(read_part(shape, plan::Part::kParity, slot, parity));
    DEDUP_TRY(has_table);
    const auto decoded = plan::decode_stripe_table(table, shape.data);
    if (!decoded) return {Code::kCorrupt, "its table cannot be understood"};
    for (unsigned u = 0; u < shape.data; ++u) {
      if (is_sound[u] && (*decoded)[u] != tables[u]) {
        return {Code::kCorrupt, "its table has other chunks than unit " + std::to_string(u)};
      }
    }
    const auto end = is_sound.begin() + shape.data;
    if (std::find(is_sound.begin(), end, false) != end) return Status::ok();
    const auto parities = static_cast<unsigned>(shape.nodes.size() - shape.data);
    if (parity == Parities::of(units, parities, slot - shape.data)) return Status::ok();
    return {Code::kCorrupt, "is not what the units give"};
  }

  // What a store indexes and nobody needs.
  void check_dead(NodeIndex node) {
    const auto index = stores_[node]->index(record_.identity, record_.attempt);
    if (!index.is_ok()) return;
    std::uint64_t dead = 0;
    for (const auto& [fingerprint, location] : in_use_[node]) {
      if (chunks_.contains(fingerprint) || needed_[node].contains(fingerprint)) continue;
      dead += stored_size(fingerprint, location.length);
    }
    if (dead <= (*index)->dead_bytes()) return;
    problem(record_.stores[node].node + " indexes " + std::to_string(dead) +
            " bytes of chunks to which the recipe does not refer, and says that it is " +
            std::to_string((*index)->dead_bytes()) + " at most");
  }

  Json names(const std::set<NodeIndex>& nodes) const {
    Json out = Json::array();
    for (const NodeIndex n : nodes) {
      out.push_back(n < record_.stores.size() ? record_.stores[n].node : "?");
    }
    return out;
  }

  void problem(std::string text) { problems_.push_back(std::move(text)); }

  void read_shards(Json& out, std::vector<Block>* content) {
    Json copies = Json::array();
    Json unreadable = Json::array();
    for (std::uint32_t s = 0; s < record_.shards.size(); ++s) {
      int sound = 0;
      for (const NodeIndex node : record_.shards[s].stores) {
        if (node >= stores_.size() || stores_[node] == nullptr) continue;
        const Status status = read_shard(s, *stores_[node], sound == 0, content);
        if (status.is_ok()) {
          ++sound;
        } else {
          problem("shard " + std::to_string(s) + " on " + record_.stores[node].node + ": " +
                  status.message());
        }
      }
      copies.push_back(sound);
      if (sound == 0) unreadable.push_back(s);
    }
    out["shards"] = copies;
    out["unreadable_shards"] = unreadable;
  }

  Status read_shard(std::uint32_t s, const Store& store, bool use, std::vector<Block>* content) {
    DEDUP_ASSIGN(const auto reader,
                 ShardFileReader::open(layout_of(store).shard(record_.identity, record_.attempt, s),
                                       record_.attempt, s, record_.shards[s].digest));
    std::vector<std::pair<std::uint64_t, Block>> blocks;
    for (const std::uint64_t number : reader->block_numbers()) {
      if (number % record_.shards.size() != s) {
        return {Code::kCorrupt, "has block " + std::to_string(number)};
      }
      DEDUP_ASSIGN(const Bytes bytes, reader->read(number));
      DEDUP_ASSIGN(Block block, decode_block(bytes));
      blocks.emplace_back(number, std::move(block));
    }
    if (!use) return Status::ok();
    for (auto& [number, block] : blocks) {
      note_block(number, block);
      if (content == nullptr) continue;
      if (content->size() <= number) content->resize(number + 1);
      (*content)[number] = std::move(block);
    }
    return Status::ok();
  }

  void note_block(std::uint64_t number, const Block& block) {
    for (const Piece& piece : block.pieces) {
      if (number * kBlockSpan + piece.end() > record_.size) {
        problem("block " + std::to_string(number) + " has a piece beyond the file's end");
      }
      if (piece.is_zero()) {
        zero_bytes_ += piece.length;
        continue;
      }
      Chunk& chunk = chunks_[piece.fingerprint];
      if (chunk.length != 0 && chunk.length != piece.chunk_length) {
        problem("chunk " + piece.fingerprint.hex() + " has two lengths");
      }
      chunk.length = piece.chunk_length;
      if (piece.placement < block.placements.size()) {
        const plan::Placement& placement = block.placements[piece.placement];
        chunk.named.insert(placement.nodes().begin(), placement.nodes().end());
        if (placement.stripe() != nullptr) note_stripe(*placement.stripe(), piece, chunk);
      }
    }
  }

  void note_stripe(plan::StripeUnit shape, const Piece& piece, Chunk& chunk) {
    const unsigned unit = std::exchange(shape.unit, std::uint8_t{0});
    const auto [entry, is_new] = stripes_.try_emplace(shape.stripe);
    Stripe& stripe = entry->second;
    if (is_new) stripe.shape = shape;
    if (stripe.shape != shape) problem("stripe " + shape.stripe.hex() + " has two shapes");
    stripe.chunks[unit].insert(piece.fingerprint);
    chunk.stripe = shape.stripe;
  }

  Json read_store(NodeIndex node) {
    const Store& store = *stores_[node];
    const std::string& name = record_.stores[node].node;
    Json out = {{"twice", Json::array()},
                {"again", Json::array()},
                {"chunks", 0},
                {"live_bytes", 0},
                {"other_attempts", 0}};
    std::set<std::uint64_t> live;
    std::map<Fingerprint, ChunkLocation>& in_use = in_use_[node];
    const Status index = read_index(node, out, live, in_use);
    if (!index.is_ok()) problem("index on " + name + ": " + index.message());

    const auto segments = store.segments(record_.identity);
    if (!segments.is_ok()) problem(name + ": " + segments.status().message());
    std::map<Fingerprint, std::vector<ChunkLocation>> seen;
    std::uint64_t bytes = 0;
    int dead = 0;
    int cut = 0;
    for (const SegmentSize& segment : segments.is_ok() ? *segments : std::vector<SegmentSize>{}) {
      bytes += segment.bytes;
      if (!live.contains(segment.segment)) ++dead;
      const auto reader = open_segment(store, record_.identity, segment.segment);
      if (!reader.is_ok()) {
        problem("segment on " + name + ": " + reader.status().message());
        continue;
      }
      // A chunk that is cut off ends a segment.
      const Status status =
          (*reader)->scan([&](const Fingerprint& fingerprint, ChunkLocation location) {
            location.segment = segment.segment;
            seen[fingerprint].push_back(location);
          });
      if (!status.is_ok()) ++cut;
    }
    for (const auto& [fingerprint, places] : seen) {
      const auto current = in_use.find(fingerprint);
      if (places.size() == 1 || current == in_use.end()) continue;
      // As when a generation did without the chunk, and a later one brought it again.
      const bool later = std::all_of(places.begin(), places.end(), [&](const auto& place) {
        return place == current->second || place.segment < current->second.segment;
      });
      out[later ? "again" : "twice"].push_back(fingerprint.hex());
    }
    out["segment_bytes"] = bytes;
    out["dead_segments"] = dead;
    out["cut_segments"] = cut;
    const auto logs = store.logs(record_.identity);
    out["logs"] = logs.is_ok() ? logs->size() : 0;
    const auto attempts = fs::list(layout_of(store).file(record_.identity) + "/generations");
    if (attempts.is_ok()) {
      out["other_attempts"] =
          attempts->size() - static_cast<std::size_t>(std::count(attempts->begin(), attempts->end(),
                                                                 record_.attempt.hex()));
    }
    return out;
  }

  // Reads every chunk that the index names.
  Status read_index(NodeIndex node, Json& out, std::set<std::uint64_t>& live,
                    std::map<Fingerprint, ChunkLocation>& in_use) {
    const Store& store = *stores_[node];
    DEDUP_ASSIGN(const auto index, store.index(record_.identity, record_.attempt));
    auto& readers = readers_[node];
    std::uint64_t live_bytes = 0;
    for (const IndexReader::SegmentUse& use : index->segments()) {
      live.insert(use.segment);
      live_bytes += use.live_bytes;
      auto reader = open_segment(store, record_.identity, use.segment);
      if (reader.is_ok()) {
        readers[use.segment] = std::move(*reader);
      } else {
        problem("segment on " + record_.stores[node].node + ": " + reader.status().message());
      }
    }
    out["live_bytes"] = live_bytes;
    out["chunks"] = index->size();
    Bytes data;
    for (std::uint64_t i = 0; i < index->size(); ++i) {
      DEDUP_ASSIGN(const IndexEntry entry, index->at(i));
      in_use.emplace(entry.fingerprint, entry.location);
      const auto chunk = chunks_.find(entry.fingerprint);
      if (chunk == chunks_.end()) continue;
      const auto reader = readers.find(entry.location.segment);
      if (reader == readers.end()) continue;
      data.resize(entry.location.length);
      const Status read = reader->second->read(entry.location, entry.fingerprint, data);
      if (!read.is_ok()) {
        problem("chunk on " + record_.stores[node].node + ": " + read.message());
      } else if (const auto holds = check_.holds(entry.fingerprint, data);
                 !holds.is_ok() || !*holds) {
        problem("chunk " + entry.fingerprint.hex() + " on " + record_.stores[node].node +
                ": its content has another hash");
      } else if (chunk->second.length != entry.location.length) {
        problem("chunk " + entry.fingerprint.hex() + " on " + record_.stores[node].node +
                ": another length than in the recipe");
      } else {
        chunk->second.held.insert(node);
      }
    }
    return Status::ok();
  }

  const CommitRecord& record_;
  std::vector<Store*> stores_;  // by position in the record; null: not given
  std::map<Fingerprint, Chunk> chunks_;
  std::map<Id128, Stripe> stripes_;
  // Of each store: where its index says that chunks are, and those that stripes need of it.
  std::map<NodeIndex, std::map<Fingerprint, ChunkLocation>> in_use_;
  std::map<NodeIndex, std::set<Fingerprint>> needed_;
  // Of each store, the segments that its index names.
  std::map<NodeIndex, std::map<std::uint64_t, std::unique_ptr<SegmentReader>>> readers_;
  std::uint64_t zero_bytes_ = 0;
  FingerprintCheck check_;
  std::vector<std::string> problems_;
};

// Bytes that no copy is left of stay zeros.
Status write_content(const FileWalk& walk, const CommitRecord& record,
                     const std::vector<Block>& blocks, const std::string& path) {
  DEDUP_ASSIGN(const fs::File file, fs::create_new(path));
  DEDUP_TRY(fs::truncate(file, record.size));
  Bytes chunk;
  Fingerprint last;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (const Piece& piece : blocks[b].pieces) {
      if (piece.is_zero()) continue;
      if (chunk.empty() || piece.fingerprint != last) {
        chunk.clear();
        if (!walk.read_chunk(piece.fingerprint, chunk)) continue;
        last = piece.fingerprint;
      }
      if (std::uint64_t{piece.chunk_offset} + piece.length > chunk.size()) {
        return {Code::kCorrupt, "a piece goes beyond its chunk"};
      }
      DEDUP_TRY(fs::write_at(file, b * kBlockSpan + piece.begin,
                             std::span(chunk).subspan(piece.chunk_offset, piece.length)));
    }
  }
  return Status::ok();
}

Status run(const std::vector<std::string>& directories, const std::string& content) {
  std::vector<Walked> stores;
  Json out = {{"stores", Json::array()}, {"files", Json::array()}};
  std::map<Id128, CommitRecord> newest;
  for (const std::string& directory : directories) {
    Walked walked;
    DEDUP_ASSIGN(walked.store, Store::open(directory, false));
    DEDUP_ASSIGN(walked.records, walked.store->list());
    DEDUP_ASSIGN(const auto files, fs::list(directory + "/files"));
    out["stores"].push_back(
        {{"directory", directory}, {"uuid", walked.store->uuid().hex()}, {"files", files.size()}});
    for (const CommitRecord& record : walked.records) {
      const auto [it, is_new] = newest.emplace(record.identity, record);
      if (!is_new && it->second.number < record.number) it->second = record;
    }
    stores.push_back(std::move(walked));
  }
  if (!content.empty() && newest.size() != 1) {
    return {Code::kArgument, std::to_string(newest.size()) + " files in these stores, not one"};
  }
  for (const auto& [identity, record] : newest) {
    FileWalk walk(record, stores);
    std::vector<Block> blocks;
    out["files"].push_back(walk.walk(content.empty() ? nullptr : &blocks));
    if (!content.empty()) DEDUP_TRY(write_content(walk, record, blocks, content));
  }
  const std::string text = out.dump();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  return Status::ok();
}

}  // namespace
}  // namespace dedup::store

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string content;
  if (arguments.size() >= 2 && arguments[0] == "--content") {
    content = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: store_walk [--content FILE] STORE...\n");
    return 2;
  }
  const dedup::Status status = dedup::store::run(arguments, content);
  if (status.is_ok()) return 0;
  std::fprintf(stderr, "store_walk: %s\n", status.message().c_str());
  return 1;
}
