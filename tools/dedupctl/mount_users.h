// The processes of a job that have this host's mount, which stays for as long as there is one of
// them (dedup-mpiexec --mount), and those that tell of the job's services, for which it does not
// stay. tools/mount_in_job.h and service/job_services.h say how they do so.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "tools/dedupctl/known_services.h"

namespace dedup::ctl {

class MountUsers {
 public:
  // Of the mount at `directory`; `first` is the connection of the process that started this one.
  // `services`, which must outlive it, gets what is told of them. kFileInUse, and that process is
  // told, if another one looks after that mount.
  static Result<std::unique_ptr<MountUsers>> begin(const std::string& directory, std::string job,
                                                   Descriptor first, KnownServices& services);
  MountUsers(const MountUsers&) = delete;
  MountUsers& operator=(const MountUsers&) = delete;
  // Whoever waits for the mount's end goes on.
  ~MountUsers();

  // It is up: answers in a thread of its own. When all have gone, this process gets SIGTERM.
  Status welcome();

  // It is not, which has been said: answers until all have gone, also who is late.
  void refuse();

 private:
  struct User {
    Descriptor connection;
    enum { kNew, kOurs, kOthers, kTeller } kind = kNew;
  };

  MountUsers(std::string job, KnownServices& services)
      : job_(std::move(job)), services_(services) {}
  // `lingers`: milliseconds after all have gone.
  Status attend(char answer, int lingers);
  Status let_in();
  bool has_ended(User& user, char answer);
  // Whether what it told could be taken.
  bool hear(User& user, const Descriptor& told);
  bool is_used() const;

  std::string job_;
  KnownServices& services_;
  Descriptor listener_;
  Descriptor wake_;  // an eventfd; readable: attend() is to return
  std::vector<User> users_;
  Descriptor last_;  // who was the last of ours, and waits for the end
  std::thread thread_;
};

}  // namespace dedup::ctl
