// A fork costs by the number of mappings and of page table entries; so does the child's end. A warm
// zygote has a thousand mappings, most of them five for each of some two hundred libraries.
//
// Does: give neighbouring parts of a library equal access, so that the kernel makes them one (text
// and constants become readable and executable, relocated constants writable as the data behind
// them), and back writable memory with huge pages. This loosens what the linker had set, in
// processes whose children run arbitrary code anyway.

#include "memory.hpp"

#include <cstdint>
#include <sys/mman.h>
#include <vector>

#include "mappings.hpp"

namespace brood {

namespace {

void merge_libraries() {
    const std::vector<Mapping> all = mappings();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        const Mapping& each = all[i];
        const Mapping& next = all[i + 1];
        if (!each.is("r--p") || each.inode == 0) continue;
        const bool before_data = next.is("rw-p") && next.inode == each.inode &&
                                 next.start == each.end;
        mprotect(reinterpret_cast<void*>(each.start), each.end - each.start,
                 PROT_READ | (before_data ? PROT_WRITE : PROT_EXEC));
    }
}

void use_huge_pages() {
    constexpr std::uintptr_t size = 2UL << 20;
    constexpr int collapse = 25;  // MADV_COLLAPSE, since Linux 6.1
    for (const Mapping& each : mappings()) {
        if (!each.is("rw-p") || each.inode != 0) continue;
        for (std::uintptr_t at = (each.start + size - 1) & ~(size - 1); at + size <= each.end;
             at += size) {
            madvise(reinterpret_cast<void*>(at), size, collapse);
        }
    }
}

}  // namespace

void make_forks_cheap() {
    merge_libraries();
    use_huge_pages();
}

}  // namespace brood
