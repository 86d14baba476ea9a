// Python takes memory for its objects in arenas of 1 MB, which the kernel puts wherever there is a
// gap; a huge page needs 2 MB on their own boundary. Here they stand side by side. The C library's
// heap is one piece by itself, if large arrays come from it too and none of it is given back.
//
// Addresses count as memory under RLIMIT_AS, so those that are left over are given up before a
// child's limit is computed: else a program could take them on top of its own.

#include "arenas.hpp"

#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <malloc.h>
#include <sys/mman.h>
#include <vector>

namespace brood {

namespace {

constexpr std::size_t huge_page = 2UL << 20;
constexpr std::size_t arena_bytes = 1UL << 20;
constexpr std::size_t region_bytes = 1UL << 30;
constexpr int largest_threshold = 32 << 20;  // the C library allows no larger one

std::uintptr_t round_up(std::uintptr_t at) { return (at + huge_page - 1) & ~(huge_page - 1); }

void unmap(std::uintptr_t from, std::uintptr_t to) {
    if (from < to) munmap(reinterpret_cast<void*>(from), to - from);
}

// Addresses for arenas; the kernel puts memory behind those in use only.
struct Region {
    std::uintptr_t start = 0, next = 0, end = 0;
    std::vector<void*> free;
    PyObjectArenaAllocator other{};  // for what does not fit
};
Region region;  // Python asks it to the end of the process

void* take(void*, std::size_t bytes) {
    // Python takes the pieces of its stacks from here too; they may lie anywhere.
    if (bytes != arena_bytes) return region.other.alloc(region.other.ctx, bytes);
    if (!region.free.empty()) {
        void* const arena = region.free.back();
        region.free.pop_back();
        return arena;
    }
    if (bytes > region.end - region.next) return region.other.alloc(region.other.ctx, bytes);
    region.next += bytes;
    return reinterpret_cast<void*>(region.next - bytes);
}

void give(void*, void* arena, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(arena);
    if (at < region.start || at >= region.end) {
        region.other.free(region.other.ctx, arena, bytes);
        return;
    }
    madvise(arena, bytes, MADV_DONTNEED);
    region.free.push_back(arena);
}

}  // namespace

void gather_arenas() {
    mallopt(M_MMAP_THRESHOLD, largest_threshold);
    mallopt(M_TRIM_THRESHOLD, 2 * largest_threshold);
    void* const room = mmap(nullptr, region_bytes + huge_page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return;
    const auto first = reinterpret_cast<std::uintptr_t>(room);
    region.start = region.next = round_up(first);
    region.end = region.start + region_bytes;
    unmap(first, region.start);
    unmap(region.end, first + region_bytes + huge_page);
    PyObject_GetArenaAllocator(&region.other);
    PyObjectArenaAllocator ours{nullptr, take, give};
    PyObject_SetArenaAllocator(&ours);
}

void end_arenas() {
    const std::uintptr_t end = std::min(round_up(region.next) + huge_page, region.end);
    unmap(end, region.end);
    region.end = end;
}

}  // namespace brood
