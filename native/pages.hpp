// The pages of memory that a program is likely to touch, made ready before it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace brood {

// Neighbouring pages that are written, or only read.
struct Pages {
    std::uintptr_t start;
    std::size_t bytes;
    bool written;
};

// What a child of this process, which still lives, has touched of the memory it was forked with.
// Empty where the kernel does not tell.
std::vector<Pages> touched_pages(pid_t child);

// Gives this process its own copy of what was written, and a mapping of what was read. Stops when
// `waiting` can be read. Changes no contents.
void make_ready(const std::vector<Pages>& pages, int waiting);

}  // namespace brood
