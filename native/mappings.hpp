// The mappings of the calling process, as the kernel lists them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace brood {

struct Mapping {
    std::uintptr_t start = 0, end = 0;
    char mode[5] = {};
    unsigned long inode = 0;  // 0 for memory that is no file's

    bool is(const char* wanted) const { return std::strcmp(mode, wanted) == 0; }
};

// In order of their addresses.
std::vector<Mapping> mappings();

}  // namespace brood
