// A box's scratch folder: memory of bounded size, which ends with the box's mount namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brood {

// Puts an empty folder of `bytes` at `place`, another of the same memory at /dev/shm, and a list of
// the own PID namespace's processes at /proc. What of `readable` lies below `place` is there
// again, not to be written. Returns an empty text, or why the kernel refused.
std::string mount_scratch(const std::string& place, std::uint64_t bytes,
                          const std::vector<std::string>& readable);

}  // namespace brood
