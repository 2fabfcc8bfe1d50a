#include "service/messages/request.h"

namespace dedup::service {

bool may_repeat(Opcode opcode) {
  switch (opcode) {
    case Opcode::kGetFile:
    case Opcode::kGetSize:
    case Opcode::kResolve:
    case Opcode::kInstallBase:
    case Opcode::kSnapshot:
    case Opcode::kFind:
    case Opcode::kGetRecord:
    case Opcode::kSpace:
    case Opcode::kLook:
    case Opcode::kLocate:
    case Opcode::kGetChunks:
    case Opcode::kReadLog:
    case Opcode::kListShard:
    case Opcode::kReadShard:
    case Opcode::kReferences:
    case Opcode::kRestore:
    case Opcode::kPutWritten:
    case Opcode::kListWritten:
    case Opcode::kLendSegment:
    case Opcode::kAskWriters:
    case Opcode::kPutCached:
    case Opcode::kHoldGeneration:
    case Opcode::kLetGo:
      return true;
    default:
      return false;
  }
}

bool waits_for_others(Opcode opcode) {
  return opcode == Opcode::kOpenBegin || opcode == Opcode::kCloseBegin || opcode == Opcode::kLock;
}

bool is_handled_at_once(Opcode opcode) {
  return opcode == Opcode::kRestore || opcode == Opcode::kPrepare || opcode == Opcode::kAwaitWriter;
}

}  // namespace dedup::service
