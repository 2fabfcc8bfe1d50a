// hints-doc markdown|roff: prints the table of hints for README.md, or the list of hints for
// doc/man/dedup.7. scripts/generate-docs puts the output where it belongs.
#include <cstdio>
#include <string>
#include <string_view>

#include "hints/hints.h"

namespace {

using dedup::hints::Agreement;
using dedup::hints::Entry;

std::string_view agreement(const Entry& entry) {
  switch (entry.agreement) {
    case Agreement::kNone:
      return "may differ between ranks";
    case Agreement::kNode:
      return "the same on all ranks of a node";
    case Agreement::kAll:
      return "the same on all ranks";
  }
  return {};
}

std::string markdown() {
  std::string text =
      "| hint | default | values | meaning |\n"
      "| ---- | ------- | ------ | ------- |\n";
  for (const Entry& entry : dedup::hints::table()) {
    text.append("| `").append(entry.name).append("` | ");
    if (!entry.default_text.empty()) text.append("`").append(entry.default_text).append("`");
    text.append(" | ").append(entry.allowed).append(" | ").append(entry.meaning).append(" |\n");
  }
  return text;
}

// For roff: what stands between backquotes in bold, hyphens as they are typed.
std::string roff_text(std::string_view text) {
  std::string result;
  bool bold = false;
  for (const char c : text) {
    if (c == '`') {
      bold = !bold;
      result += bold ? "\\fB" : "\\fR";
    } else if (c == '-') {
      result += "\\-";
    } else if (c == '\\') {
      result += "\\e";
    } else {
      result += c;
    }
  }
  return result;
}

std::string roff() {
  std::string text;
  for (const Entry& entry : dedup::hints::table()) {
    text.append(".TP\n\\fB").append(entry.name).append("\\fR");
    if (!entry.default_text.empty()) {
      text.append(" (default: ").append(roff_text(entry.default_text)).append(")");
    }
    std::string meaning(entry.meaning);
    if (meaning[0] >= 'a' && meaning[0] <= 'z') meaning[0] = static_cast<char>(meaning[0] - 32);
    // The zero-width \& keeps a line from being taken for a request.
    text.append("\n\\&").append(roff_text(meaning)).append(".\n");
    text.append("Values: ").append(roff_text(entry.allowed)).append(";\n");
    text.append(agreement(entry)).append(";\n");
    text.append(entry.changeable ? "takes effect when set on an open file.\n"
                                 : "fixed while the file is open.\n");
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view format = argc == 2 ? argv[1] : "";
  std::string text;
  if (format == "markdown") {
    text = markdown();
  } else if (format == "roff") {
    text = roff();
  } else {
    std::fprintf(stderr, "Usage: hints-doc markdown|roff\n");
    return 2;
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : 1;
}
