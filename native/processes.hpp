// The processes below one: who they are, what they use, and their end.
#pragma once

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace brood {

// All processes below `pid`, as far as they can be seen in one pass.
std::vector<pid_t> processes_below(pid_t pid);

struct Usage {
    std::uint64_t tasks = 0;  // processes and their threads
    std::uint64_t bytes = 0;  // memory that is no file's
};

// What the processes below `pid` use together; where they have more than `most` tasks, only how many.
// `exactly`: memory that several share is divided among them, which takes the kernel long; else each
// counts it whole.
Usage usage_below(pid_t pid, std::uint64_t most, bool exactly);

// Kills all that is below the calling process and reaps it, orphans that it adopts among them.
// False if there is no end to it.
bool end_all_below();

}  // namespace brood
