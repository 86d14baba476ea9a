// The walls round a candidate: what the kernel is asked to keep its process from.
#pragma once

#include <cstdint>
#include <linux/filter.h>
#include <string>
#include <utility>
#include <vector>

namespace brood {

struct Limits {
    std::uint64_t address_space_bytes;
    std::uint64_t cpu_seconds;
};

// The size of the calling process's address space.
std::uint64_t address_space_bytes();

// Prepared once by the zygote, then put round each of its children by `confine`.
class Walls {
public:
    // `readable`: the files and folders that a candidate may read, and nothing else.
    explicit Walls(const std::vector<std::string>& readable);
    ~Walls();
    Walls(const Walls&) = delete;
    Walls& operator=(const Walls&) = delete;

    // Confines the calling process for good and closes its descriptors from `keep` on; it must
    // have one thread. False: see errno.
    bool confine(const Limits& limits, unsigned int keep) const;

    // Whether processes can't be started, so that killing the child leaves nothing behind.
    bool forbids_processes() const { return !filter_.empty(); }

    // Each wall that this machine lacks, and why.
    const std::vector<std::pair<std::string, std::string>>& missing() const { return missing_; }

private:
    void prepare_files(const std::vector<std::string>& readable);
    void prepare_calls();

    int ruleset_ = -1;                 // Landlock
    bool scopes_signals_ = false;      // Landlock keeps signals inside the process
    std::vector<sock_filter> filter_;  // seccomp
    std::vector<std::pair<std::string, std::string>> missing_;
};

// Moves the calling process into network and IPC namespaces of its own, with nothing in them.
// Returns an empty text, or why the kernel refused.
std::string leave_network();

}  // namespace brood
