// The walls: Landlock for files, sockets and signals; a list of system calls; resource limits;
// namespaces. Landlock's rules are a list too: what may be read, and for a box what may be written
// and run. A candidate may write, start, connect to and signal nothing.
//
// Does not: hide that a file exists, its size and its times, which the kernel tells of any path.
// Does not: bound the number of threads; the zygote watches that.

#include "walls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdexcept>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace brood {

namespace {

// Landlock's interface: its header may be older than the kernel, or missing.
constexpr long create_ruleset = 444, add_rule = 445, restrict_self = 446;
constexpr unsigned int ask_version = 1;
constexpr int path_beneath = 1;
constexpr std::uint64_t execute = 1U << 0, write_file = 1U << 1, read_file = 1U << 2,
                        read_folder = 1U << 3, make_device = 1U << 6 | 1U << 11,
                        truncate_file = 1U << 14;
struct __attribute__((packed)) PathRule {
    std::uint64_t allowed;
    std::int32_t parent;
};

// Sets the soft limit, and the hard one to `more` than that, but never above the hard limit that is
// already there.
bool limit(__rlimit_resource resource, rlim_t value, rlim_t more = 0) {
    rlimit current{};
    if (getrlimit(resource, &current) != 0) return false;
    const rlim_t hard = std::min(value + more, current.rlim_max);  // RLIM_INFINITY is the largest
    const rlimit wanted{std::min(value, hard), hard};
    return setrlimit(resource, &wanted) == 0;
}

// A number of /proc/self/statm, in bytes: 0 for the address space, 5 for data and stacks.
std::uint64_t own_size(int field) {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    for (int i = 0; i <= field; ++i) statm >> pages;
    if (!statm) throw std::runtime_error("/proc/self/statm can't be read");
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The line of a user namespace's map in which an identity stays what it is.
std::string own_id(unsigned int id) {
    return std::to_string(id) + " " + std::to_string(id) + " 1";
}

// Gives up what a superuser may do besides; for anyone else there is nothing to give up.
bool drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    return syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

std::uint64_t address_space_bytes() { return own_size(0); }

std::uint64_t data_bytes() { return own_size(5); }

Walls::Walls(Reach reach) : reach_(std::move(reach)) {
    prepare_files();
    prepare_calls();
}

Walls::~Walls() {
    if (ruleset_ >= 0) close(ruleset_);
}

void Walls::find_files() {
    if (ruleset_ < 0) return;
    close(ruleset_);
    prepare_files();
}

void Walls::prepare_files() {
    // Without Landlock nothing may be written: the same kernels can't seal a box's mounts either.
    rules_ = {false, reach_.is_alone, reach_.processes};
    const long version = syscall(create_ruleset, nullptr, 0, ask_version);
    if (version < 1) {
        missing_.emplace_back("files", "the kernel has no Landlock");
        return;
    }
    // Where files can't be opened for writing, the list of calls sees to it instead.
    if (version < 3 && reach_.processes) {
        missing_.emplace_back("files", "the kernel's Landlock lets files be cut");
    }
    // Of the access rights, version 1 has thirteen; 2, 3 and 5 add one each to the end.
    const int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    struct {
        std::uint64_t files, network, scoped;
    } handled{(1ULL << rights) - 1, version >= 4 ? 3ULL : 0, version >= 6 ? 3ULL : 0};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    const int made = static_cast<int>(syscall(create_ruleset, &handled, size, 0));
    // Away from the low numbers, which a child fills with its own descriptors.
    ruleset_ = fcntl(made, F_DUPFD_CLOEXEC, 64);
    if (ruleset_ < 0) missing_.emplace_back("files", std::string("Landlock: ") + strerror(errno));
    if (made >= 0) close(made);
    if (ruleset_ < 0) return;
    // Before version 3, opening a file for reading could cut it to nothing, but for a box, whose
    // mounts are read-only.
    rules_.writing = version >= 3 || (reach_.is_alone && !reach_.writable.empty());
    rules_.signals = rules_.signals || version >= 6;
    const std::uint64_t run = reach_.processes ? execute : 0;
    for (const std::string& path : reach_.readable) allow(path, read_file | run, read_folder);
    const std::uint64_t change = handled.files & ~make_device;
    const std::uint64_t change_file = execute | write_file | read_file | (truncate_file & change);
    for (const std::string& path : reach_.writable) allow(path, change_file, change);
}

void Walls::allow(const std::string& path, std::uint64_t file_rights,
                  std::uint64_t folder_rights) const {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return;  // what is not there can't be read
    struct stat status {};
    fstat(fd, &status);
    PathRule rule{file_rights, fd};
    if (S_ISDIR(status.st_mode)) rule.allowed |= folder_rights;
    if (path == "/dev/null") rule.allowed |= write_file;  // programs silence their output with it
    syscall(add_rule, ruleset_, path_beneath, &rule, 0);
    close(fd);
}

void Walls::prepare_calls() {
    std::string why;
    filter_ = make_call_filter(rules_, why);
    if (filter_.empty()) missing_.emplace_back("calls", why);
}

bool Walls::confine(const Limits& limits, unsigned int keep) const {
    // RLIMIT_AS rather than RLIMIT_DATA, because only RLIMIT_AS counts shared mappings.
    if (!limit(RLIMIT_AS, limits.address_space_bytes)) return false;
    if (!limit(RLIMIT_DATA, limits.data_bytes) || !limit(RLIMIT_NPROC, limits.processes)) return false;
    // SIGXCPU tells why it ended; what ignores it is killed a second later.
    if (!limit(RLIMIT_CPU, limits.cpu_seconds, 1) || !limit(RLIMIT_FSIZE, limits.file_bytes)) return false;
    // One byte, which holds no dump: 0 does not keep the kernel from starting a program that takes
    // dumps (core_pattern), as root and outside of all walls; 1 does.
    if (!limit(RLIMIT_CORE, 1) || !limit(RLIMIT_NOFILE, limits.open_files)) return false;
    if (!limit(RLIMIT_MEMLOCK, 0) || !limit(RLIMIT_MSGQUEUE, 0)) return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) != 0 || !drop_capabilities()) return false;
    if (ruleset_ >= 0 && syscall(restrict_self, ruleset_, 0) != 0) return false;
    if (syscall(SYS_close_range, keep, ~0U, 0) != 0) return false;
    if (filter_.empty()) return true;
    const sock_fprog program{static_cast<unsigned short>(filter_.size()),
                             const_cast<sock_filter*>(filter_.data())};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0UL, 0UL) == 0;
}

std::string enter_namespaces() {
    constexpr int wanted = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS;
    if (unshare(wanted) == 0) return "";
    // Without privileges, only a user namespace of one's own gives the right to the others. Files
    // can be made there by a user that it knows.
    const std::string user = own_id(geteuid()), group = own_id(getegid());
    if (unshare(CLONE_NEWUSER | wanted) == 0) {
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/gid_map") << group;
        std::ofstream("/proc/self/uid_map") << user;
        return "";
    }
    return std::string("no namespace: ") + strerror(errno);
}

std::string seal_mounts() {
    struct {
        std::uint64_t set, clear, propagation, user_namespace;
    } attributes{1 /* MOUNT_ATTR_RDONLY */, 0, MS_PRIVATE, 0};
    constexpr long mount_setattr = 442;
    constexpr int recursive = 0x8000;
    if (syscall(mount_setattr, -1, "/", recursive, &attributes, sizeof attributes) == 0) return "";
    return std::string("not to be made read-only: ") + strerror(errno);
}

}  // namespace brood
