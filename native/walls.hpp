// The walls round a candidate: what the kernel is asked to keep its process from.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"

namespace brood {

struct Limits {
    std::uint64_t address_space_bytes;
    std::uint64_t cpu_seconds;
};

// The size of the calling process's address space.
std::uint64_t address_space_bytes();

// Walls that this machine lacks, each with the reason.
using Missing = std::vector<std::pair<std::string, std::string>>;

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

    const Missing& missing() const { return missing_; }

private:
    void prepare_files(const std::vector<std::string>& readable);
    void prepare_calls();
    void allow(const std::string& path) const;

    int ruleset_ = -1;          // Landlock
    CallRules rules_{};         // what the filter may leave to Landlock
    std::vector<sock_filter> filter_;
    Missing missing_;
};

// Moves the calling process, which must have one thread, into network, IPC and mount namespaces of
// its own, without a network. Returns an empty text, or why the kernel refused.
std::string enter_namespaces();

// Makes all files read-only in the mount namespace that `enter_namespaces` made: not even the time
// of an access is written. Returns an empty text, or why the kernel refused.
std::string seal_mounts();

}  // namespace brood
