// Kept generations that a store dropped, since it had no room.
#pragma once

#include <string>

#include "service/messages/store_node.h"

namespace dedup::engine {

// One line for each.
void say_given_up(const std::string& node, const service::SpaceReply& room);

}  // namespace dedup::engine
