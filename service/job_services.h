// What a process needs to know to ask a job's services, and how one that is none of the job's ranks
// is told: the process that looks after the job's mount on this host (dedup-mpiexec --mount).
//
// Who tells connects to that process (base/mount_address.h) and sends one byte, kTellsOfServices,
// with a descriptor of a file in memory that the rest stands in. What was told holds for as long as
// the connection is there. Both ends see to it that the other one is of the same user: the secret
// lets whoever knows it read all files of the job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/types.h"
#include "service/client.h"

namespace dedup::service {

struct JobServices {
  Id128 job;  // its id
  Secret secret{};
  std::uint32_t patience = 0;  // seconds
  std::vector<Peer> peers;     // of all nodes
  bool possible() const { return patience != 0 && !peers.empty() && peers.size() < kNoNode; }

  // Of a process that is on none of the nodes.
  std::unique_ptr<Client> connect() const;
};

// No name of a job begins with it (tools/mount_in_job.h).
inline constexpr char kTellsOfServices = '\0';

// Tells who looks after the mount at `directory`; the connection. kNotFound if nobody does, kAccess
// if it is another user's process.
Result<Descriptor> tell_mount(const std::string& directory, const JobServices& services);

// What the descriptor leads to that came with the byte; kCorrupt if that is nothing of the kind.
Result<JobServices> read_services(const Descriptor& descriptor);

}  // namespace dedup::service
