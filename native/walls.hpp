// The walls round a candidate: what the kernel is asked to keep its process from.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"

namespace brood {

constexpr std::uint64_t unlimited = ~std::uint64_t{0};

struct Limits {
    std::uint64_t address_space_bytes;
    std::uint64_t cpu_seconds;
    std::uint64_t data_bytes = unlimited;  // memory of its own, not what it only reserves
    std::uint64_t file_bytes = 0;          // the largest file that it may write
    std::uint64_t open_files = 64;
    std::uint64_t processes = unlimited;  // of the user, threads among them
};

// What a process may reach, and nothing else.
struct Reach {
    std::vector<std::string> readable;  // files and folders
    std::vector<std::string> writable;  // folders in which it may also make and change files
    bool processes = false;  // it may start processes, and run the programs that it may read
    bool is_alone = false;   // in a PID namespace: there is nobody else whom it could signal
};

// The size of the calling process's address space, and of what in it is its own.
std::uint64_t address_space_bytes();
std::uint64_t data_bytes();

// Walls that this machine lacks, each with the reason.
using Missing = std::vector<std::pair<std::string, std::string>>;

// Prepared once by the zygote, then put round each of its children by `confine`.
class Walls {
public:
    explicit Walls(Reach reach);
    ~Walls();
    Walls(const Walls&) = delete;
    Walls& operator=(const Walls&) = delete;

    // Confines the calling process for good and closes its descriptors from `keep` on; it must
    // have one thread. False: see errno.
    bool confine(const Limits& limits, unsigned int keep) const;

    // Finds the files of `Reach` anew, where mounts have changed since; other processes' walls stay.
    void find_files();

    // Whether processes can't be started, so that killing the child leaves nothing behind.
    bool forbids_processes() const { return !filter_.empty() && !reach_.processes; }

    const Missing& missing() const { return missing_; }

private:
    void prepare_files();
    void prepare_calls();
    void allow(const std::string& path, std::uint64_t file_rights, std::uint64_t folder_rights) const;

    Reach reach_;
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
