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
//    "chunks": [{"fingerprint", "length", "named": [node], "held": [node]}],
//    "zero_bytes", "chunk_bytes", "problems": [text],
//    "on_store": {node: {"twice": [fingerprint], "again": [fingerprint], "chunks",
//      "segment_bytes", "live_bytes", "dead_segments", "cut_segments", "logs",
//      "other_attempts"}}}]}
//
// "twice" and "again" are chunks that stand in a store's segments more than once: "again" if the
// one in use is in the newest of the segments.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/hasher.h"
#include "base/piece.h"
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

using Json = nlohmann::json;

struct Walked {
  std::unique_ptr<Store> store;
  std::vector<CommitRecord> records;
};

// A chunk that the recipe refers to.
struct Chunk {
  std::uint32_t length = 0;
  std::set<NodeIndex> named;  // holders by the recipe
  std::set<NodeIndex> held;   // stores that have it, sound
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
    out["zero_bytes"] = zero_bytes_;
    std::uint64_t chunk_bytes = 0;
    Json chunks = Json::array();
    for (const auto& [fingerprint, chunk] : chunks_) {
      chunk_bytes += chunk.length;
      chunks.push_back({{"fingerprint", fingerprint.hex()},
                        {"length", chunk.length},
                        {"named", names(chunk.named)},
                        {"held", names(chunk.held)}});
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
    for (const NodeIndex node : chunk->second.held) {
      const auto index = stores_[node]->index(record_.identity, record_.attempt);
      if (!index.is_ok()) continue;
      const auto entry = (*index)->find(fingerprint);
      if (!entry.is_ok()) continue;
      const auto segment = SegmentFileReader::open(
          layout_of(*stores_[node]).segment(record_.identity, entry->location.segment));
      if (!segment.is_ok()) continue;
      out.resize(entry->location.length);
      if ((*segment)->read(entry->location, fingerprint, out).is_ok()) return true;
    }
    return false;
  }

 private:
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
        const NodeSet& set = block.placements[piece.placement].nodes();
        chunk.named.insert(set.begin(), set.end());
      }
    }
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
    std::map<Fingerprint, ChunkLocation> in_use;
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
      const auto reader =
          SegmentFileReader::open(layout_of(store).segment(record_.identity, segment.segment));
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
    std::map<std::uint64_t, std::unique_ptr<SegmentReader>> readers;
    std::uint64_t live_bytes = 0;
    for (const IndexReader::SegmentUse& use : index->segments()) {
      live.insert(use.segment);
      live_bytes += use.live_bytes;
      auto reader =
          SegmentFileReader::open(layout_of(store).segment(record_.identity, use.segment));
      if (reader.is_ok()) {
        readers[use.segment] = std::move(*reader);
      } else {
        problem("segment on " + record_.stores[node].node + ": " + reader.status().message());
      }
    }
    out["live_bytes"] = live_bytes;
    out["chunks"] = index->size();
    Bytes data;
    std::uint64_t dead = 0;
    for (std::uint64_t i = 0; i < index->size(); ++i) {
      DEDUP_ASSIGN(const IndexEntry entry, index->at(i));
      in_use.emplace(entry.fingerprint, entry.location);
      const auto chunk = chunks_.find(entry.fingerprint);
      if (chunk == chunks_.end()) {
        dead += stored_size(entry.fingerprint, entry.location.length);
        continue;
      }
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
    if (dead > index->dead_bytes()) {
      problem(record_.stores[node].node + " indexes " + std::to_string(dead) +
              " bytes of chunks to which the recipe does not refer, and says that it is " +
              std::to_string(index->dead_bytes()) + " at most");
    }
    return Status::ok();
  }

  const CommitRecord& record_;
  std::vector<Store*> stores_;  // by position in the record; null: not given
  std::map<Fingerprint, Chunk> chunks_;
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
