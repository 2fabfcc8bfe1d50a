// What files cost at least that nodes commit together, whoever programs it: the bound for small
// ones.
//
//   rounds [options] DIRECTORY        (--help names them)
//
// Each node is a thread with a directory of its own. A client writes a file's data to one of them,
// and asks all nodes three times, waiting for all answers: to know the file (a lock in a directory
// of its own), to write a record of it, and to rename that into its place. Nothing is flushed, said
// twice, or checked. With --again the file is there and has its lock. Prints one line of JSON:
// seconds, and the processor's seconds.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/programs/processor.h"

namespace dedup::bench {
namespace {

constexpr std::size_t kRecordBytes = 512;

struct Options {
  std::string directory;
  int nodes = 4;
  int clients = 1;
  int files = 1000;
  std::size_t bytes = 64 << 10;
  bool again = false;
};

enum class Step { kKnow, kPrepare, kCommit };
constexpr std::array kSteps = {Step::kKnow, Step::kPrepare, Step::kCommit};

// As much as a request and an answer have at least: whose file, and what of it.
struct Message {
  int file = 0;
  Step step = Step::kKnow;
  std::array<char, 48> more{};
};

// The system's answer, or the end of the program.
template <typename T>
T checked(T result, const std::string& what) {
  if (result >= 0) return result;
  std::perror(what.c_str());
  std::exit(1);
}

void close_file(int fd) {
  checked(close(fd), "close");
}

void write_file(const std::string& path, const std::vector<char>& data) {
  const int fd = checked(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path);
  const ssize_t done = checked(write(fd, data.data(), data.size()), path);
  if (static_cast<std::size_t>(done) != data.size()) std::exit(1);
  close_file(fd);
}

std::string name_of(const Options& options, int node, int file) {
  return options.directory + "/n" + std::to_string(node) + "/" + std::to_string(file);
}

void do_step(const Options& options, int node, const Message& message) {
  const std::string name = name_of(options, node, message.file);
  static const std::vector<char> record(kRecordBytes, 'r');
  switch (message.step) {
    case Step::kKnow: {
      if (!options.again || access(name.c_str(), F_OK) != 0) {
        checked(mkdir(name.c_str(), 0700), name);
      }
      const int fd =
          checked(open((name + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), name);
      checked(flock(fd, LOCK_EX), name);
      close_file(fd);
      break;
    }
    case Step::kPrepare:
      write_file(name + "/entry.new", record);
      break;
    case Step::kCommit:
      checked(rename((name + "/entry.new").c_str(), (name + "/entry").c_str()), name);
      break;
  }
}

// A node, until its clients have gone.
void serve(const Options& options, int node, std::vector<pollfd> clients) {
  for (std::size_t left = clients.size(); left > 0;) {
    checked(poll(clients.data(), clients.size(), -1), "poll");
    for (pollfd& client : clients) {
      if (client.revents == 0) continue;
      Message message;
      if (checked(recv(client.fd, &message, sizeof message, 0), "recv") == 0) {
        close_file(client.fd);
        client.fd = -1;
        --left;
        continue;
      }
      do_step(options, node, message);
      checked(send(client.fd, &message, sizeof message, 0), "send");
    }
  }
}

void ask_all(const std::vector<int>& nodes, Message message) {
  for (const int node : nodes) checked(send(node, &message, sizeof message, 0), "send");
  for (const int node : nodes) checked(recv(node, &message, sizeof message, 0), "recv");
}

void make_files(const Options& options, int client, const std::vector<int>& nodes) {
  const std::vector<char> data(options.bytes, 'd');
  for (int file = client; file < options.files; file += options.clients) {
    for (const Step step : kSteps) {
      ask_all(nodes, {options.again ? 0 : file, step, {}});
      const bool writes = step == Step::kKnow;
      if (writes)
        write_file(name_of(options, client % options.nodes, options.again ? 0 : file) + "/data",
                   data);
    }
  }
  for (const int node : nodes) close_file(node);
}

int run(const Options& options) {
  std::vector<std::vector<int>> of_clients(static_cast<std::size_t>(options.clients));
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int node = 0; node < options.nodes; ++node) {
    const std::string directory = options.directory + "/n" + std::to_string(node);
    checked(mkdir(directory.c_str(), 0700), directory);
    std::vector<pollfd> ends;
    for (auto& client : of_clients) {
      int pair[2];
      checked(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
      client.push_back(pair[0]);
      ends.push_back({pair[1], POLLIN, 0});
    }
    threads.emplace_back(serve, std::cref(options), node, std::move(ends));
  }
  for (int client = 0; client < options.clients; ++client) {
    threads.emplace_back(make_files, std::cref(options), client,
                         std::cref(of_clients[static_cast<std::size_t>(client)]));
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const nlohmann::ordered_json line = {{"files", options.files},
                                       {"seconds", seconds.count()},
                                       {"processor_seconds", processor_seconds()}};
  std::printf("%s\n", line.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  Options options;
  CLI::App app("What small files cost at least that nodes commit together.");
  app.add_option("directory", options.directory, "an empty one")->required();
  app.add_option("--nodes", options.nodes, "that know of each file");
  app.add_option("--clients", options.clients, "that make files at the same time");
  app.add_option("--files", options.files, "of all clients together");
  app.add_option("--bytes", options.bytes, "of each; 64K and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--again", options.again, "one file, again and again");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
