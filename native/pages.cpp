// A forked child shares its parent's memory until it writes to it; each page then costs a fault and
// a copy, and each library page that it reads a fault. A small program's time is mostly that. But
// it is nearly the same pages each time, so a child that waits for its program can have them made.

#include "pages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "mappings.hpp"

namespace brood {

namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
// Of an entry of /proc/PID/pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t present = 1ULL << 63, of_file = 1ULL << 61, exclusive = 1ULL << 56;
constexpr int populate_read = 22, populate_write = 23;  // MADV_POPULATE_*, since Linux 5.14

bool is_touched(std::uint64_t entry, bool written) {
    if ((entry & present) == 0) return false;
    return written ? (entry & exclusive) != 0 && (entry & of_file) == 0 : (entry & of_file) != 0;
}

void add(std::vector<Pages>& found, std::uintptr_t at, bool written) {
    if (!found.empty() && found.back().start + found.back().bytes == at &&
        found.back().written == written) {
        found.back().bytes += page;
    } else {
        found.push_back({at, page, written});
    }
}

}  // namespace

std::vector<Pages> touched_pages(pid_t child) {
    std::vector<Pages> found;
    const Descriptor pagemap(
        open(("/proc/" + std::to_string(child) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
    for (const Mapping& each : mappings()) {
        const bool written = each.is("rw-p");
        if (!written && (each.inode == 0 || (!each.is("r-xp") && !each.is("r--p")))) continue;
        std::vector<std::uint64_t> entries((each.end - each.start) / page);
        const ssize_t bytes =
            pread(pagemap.get(), entries.data(), entries.size() * sizeof(std::uint64_t),
                  static_cast<off_t>(each.start / page * sizeof(std::uint64_t)));
        if (bytes <= 0) continue;
        for (std::size_t i = 0; i < static_cast<std::size_t>(bytes) / sizeof(std::uint64_t); ++i) {
            if (is_touched(entries[i], written)) add(found, each.start + i * page, written);
        }
    }
    return found;
}

void make_ready(const std::vector<Pages>& pages, int waiting) {
    pollfd polled{waiting, POLLIN, 0};
    for (const Pages& each : pages) {
        // With a program at hand, it is as quick to let that touch what it needs.
        if (poll(&polled, 1, 0) != 0) return;
        madvise(reinterpret_cast<void*>(each.start), each.bytes,
                each.written ? populate_write : populate_read);
    }
}

}  // namespace brood
