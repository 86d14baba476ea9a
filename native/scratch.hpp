// What is mounted in a box's own mount namespace, and ends with it: its scratch folder, memory of
// bounded size, and the list of its processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brood {

// Puts an empty folder of `bytes` at `place`, and another of the same memory at /dev/shm. What of
// `readable` lies below `place` is there again, not to be written. Returns an empty text, or why the
// kernel refused.
std::string mount_scratch(const std::string& place, std::uint64_t bytes,
                          const std::vector<std::string>& readable);

// Puts the processes of the own PID namespace at /proc; where the kernel can bound their number, not
// many more than `most` can be.
void mount_processes(std::uint64_t most);

}  // namespace brood
