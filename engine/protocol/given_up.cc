#include "engine/protocol/given_up.h"

#include "base/warn.h"

namespace dedup::engine {

void say_given_up(const std::string& node, const service::SpaceReply& room) {
  for (const std::string& name : room.given_up) {
    warn(name + ": this generation, which was kept, is given up on node " + node +
         ", whose store has no room");
  }
}

}  // namespace dedup::engine
