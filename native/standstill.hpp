// Telling a process that stood still from one that waited.
//
// A process may be stopped and continued, alone or with all others of a run: by a signal, a frozen
// container, a suspended machine. The clock goes on meanwhile, and what had a second left has no time
// any more. A wait that took much longer than it was to says so.

#pragma once

#include <chrono>

namespace brood {

// A machine that is only busy wakes a process sooner.
constexpr std::chrono::seconds longest_wakeup{1};

// Returns for how long this process stood still if a wait for at most `wanted` took so long; 0 if it
// did not.
inline std::chrono::steady_clock::duration stood_still(std::chrono::steady_clock::duration took,
                                                       std::chrono::steady_clock::duration wanted) {
    return took > wanted + longest_wakeup ? took - wanted
                                          : std::chrono::steady_clock::duration::zero();
}

}  // namespace brood
