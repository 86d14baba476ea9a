#include "mappings.hpp"

#include <cstdio>
#include <fstream>
#include <string>

namespace brood {

std::vector<Mapping> mappings() {
    std::vector<Mapping> found;
    std::ifstream maps("/proc/self/maps");
    Mapping each;
    for (std::string line; std::getline(maps, line);) {
        if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &each.start, &each.end, each.mode,
                        &each.inode) == 4) {
            found.push_back(each);
        }
    }
    return found;
}

}  // namespace brood
