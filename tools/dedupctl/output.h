// Answers on standard output.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/dedupctl/session.h"
#include "tools/dedupctl/table.h"

namespace dedup::ctl {

using Json = nlohmann::ordered_json;

// "n0, n2"
std::string join(const std::vector<std::string>& words);

// What every answer in JSON begins with: the stores that were read, and those that could not be.
Json json_head(const Session& session, const std::string& command);
// The answer about files, on rank 0: in JSON, or the text.
void print_files(const Session& session, const std::string& command, Json files,
                 const std::string& text);
// How its chunks are to be kept, as the hint dedup_redundancy says it: "copies", "rs:8+2".
std::string redundancy_of(const store::CommitRecord& record);
// How well a file's chunks are kept, and are to be: "every chunk is on 2 stores at least, 2
// wanted". Some may be in stripes, which are compared to copies.
std::string kept_text(bool in_stripes, std::uint64_t lowest, std::uint64_t wanted);

// A file of the catalog as `ls` and others show it.
Json json_of(const Session& session, const FileRow& file);

void print(const std::string& text);  // to standard output
void print(const Json& json);
// Each store that cannot be read, on standard error.
void print_troubles(const Session& session);

}  // namespace dedup::ctl
