// The walls: Landlock for files, sockets and signals; a system call filter; resource limits.
//
// The filter is a list of what is allowed, made by libseccomp; every other call fails with EPERM,
// so that a library that can do without a call goes on. Landlock's rules are a list too: what may
// be read. Nothing may be written, started, connected or signalled.
//
// Does not: bound the number of threads; the zygote watches that.

#include "walls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace brood {

namespace {

// Of what a warm interpreter with NumPy, SciPy, numba and torch asks of the kernel, all that has
// an effect on the calling process only.
constexpr const char* allowed_calls[] = {
    // memory
    "brk", "madvise", "mincore", "mmap", "mprotect", "mremap", "munmap",
    // files that Landlock lets it open, and the descriptors that it was given
    "access", "close", "dup", "faccessat", "faccessat2", "fadvise64", "fstat", "fstatfs", "getcwd",
    "getdents64", "lseek", "lstat", "newfstatat", "pread64", "read", "readlink",
    "readlinkat", "readv", "stat", "statfs", "statx", "write", "writev",
    // threads and waiting
    "clock_nanosleep", "futex", "futex_waitv", "gettid", "nanosleep", "poll", "ppoll", "pselect6",
    "rseq", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_yield", "select",
    "set_robust_list", "set_tid_address",
    // its own signal handlers
    "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack", "alarm", "getitimer", "setitimer", "pause",
    // what time it is, who and where it is
    "clock_getres", "clock_gettime", "getcpu", "getegid", "geteuid", "getgid", "getgroups",
    "getpgrp", "getpid", "getppid", "getpriority", "getrandom", "getrlimit", "getrusage",
    "getsid", "gettimeofday", "getuid", "sysinfo", "time", "times", "uname",
    // its end
    "exit", "exit_group",
};
// Of fcntl, what changes one descriptor: no signals, locks, leases or larger pipes.
constexpr int allowed_fcntls[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
constexpr const char* signal_calls[] = {"kill", "tgkill", "tkill"};

// libseccomp's interface, version 2. It is opened when it is needed, so that the extension builds
// and loads where the library is missing; the values are those of its header, which never change.
struct SeccompCompare {
    unsigned int argument;
    int operation;
    std::uint64_t a, b;
};
constexpr std::uint32_t act_allow = 0x7fff0000U;
constexpr std::uint32_t act_errno = 0x00050000U;
constexpr int compare_equal = 4, compare_masked = 7, attribute_optimize = 8;

class Libseccomp {
public:
    Libseccomp() : library_(dlopen("libseccomp.so.2", RTLD_NOW | RTLD_LOCAL)) {
        if (library_ == nullptr) return;
        load(init, "seccomp_init");
        load(add, "seccomp_rule_add_array");
        load(resolve, "seccomp_syscall_resolve_name");
        load(set_attribute, "seccomp_attr_set");
        load(write_program, "seccomp_export_bpf");
        load(release, "seccomp_release");
    }
    bool usable() const { return library_ != nullptr && complete_; }

    void* (*init)(std::uint32_t) = nullptr;
    int (*add)(void*, std::uint32_t, int, unsigned int, const SeccompCompare*) = nullptr;
    int (*resolve)(const char*) = nullptr;
    int (*set_attribute)(void*, int, std::uint32_t) = nullptr;
    int (*write_program)(const void*, int) = nullptr;
    void (*release)(void*) = nullptr;

private:
    template <typename Function> void load(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library_, name));
        complete_ = complete_ && function != nullptr;
    }

    void* library_;
    bool complete_ = true;
};

// Adds a rule for a call by name; a name that this architecture lacks needs none.
bool add_rule(const Libseccomp& seccomp, void* filter, std::uint32_t action, const char* name,
              const std::vector<SeccompCompare>& conditions = {}) {
    const int number = seccomp.resolve(name);
    if (number < 0) return true;
    return seccomp.add(filter, action, number, static_cast<unsigned int>(conditions.size()),
                       conditions.data()) == 0;
}

// landlock: whether files are kept by Landlock; signals: whether signals are.
bool add_rules(const Libseccomp& seccomp, void* filter, bool landlock, bool signals) {
    bool added = true;
    for (const char* name : allowed_calls) {
        added = added && add_rule(seccomp, filter, act_allow, name);
    }
    if (signals) {
        for (const char* name : signal_calls) {
            added = added && add_rule(seccomp, filter, act_allow, name);
        }
    }
    // Where Landlock does not say what may be written, nothing may be opened for that.
    const std::uint64_t writing = landlock ? 0 : O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_TMPFILE;
    added = added && add_rule(seccomp, filter, act_allow, "open",
                              {{1, compare_masked, writing, 0}});
    added = added && add_rule(seccomp, filter, act_allow, "openat",
                              {{2, compare_masked, writing, 0}});
    // Threads, but no processes. The flags of clone3 lie in memory, where a filter can't see them;
    // told that the kernel lacks it, the C library falls back to clone.
    const std::uint64_t thread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
    const std::uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                     CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    added = added && add_rule(seccomp, filter, act_allow, "clone",
                              {{0, compare_masked, thread | namespaces, thread}});
    added = added && add_rule(seccomp, filter, act_errno | ENOSYS, "clone3");
    for (const int command : allowed_fcntls) {
        added = added && add_rule(seccomp, filter, act_allow, "fcntl",
                                  {{1, compare_equal, static_cast<std::uint64_t>(command), 0}});
    }
    // Limits may be asked for; the new ones are the third argument.
    added = added && add_rule(seccomp, filter, act_allow, "prlimit64", {{2, compare_equal, 0, 0}});
    // Python asks of each file whether it is a terminal.
    added = added && add_rule(seccomp, filter, act_errno | ENOTTY, "ioctl");
    return added;
}

std::vector<sock_filter> read_program(int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return {};
    std::vector<sock_filter> program(static_cast<std::size_t>(status.st_size) /
                                     sizeof(sock_filter));
    const ssize_t bytes = pread(fd, program.data(), program.size() * sizeof(sock_filter), 0);
    if (bytes != status.st_size) program.clear();
    return program;
}

// Sets the soft and the hard limit, but never above the hard limit that is already there.
bool limit(__rlimit_resource resource, rlim_t value) {
    rlimit current{};
    if (getrlimit(resource, &current) != 0) return false;
    const rlim_t bound = std::min(value, current.rlim_max);  // RLIM_INFINITY is the largest rlim_t
    const rlimit wanted{bound, bound};
    return setrlimit(resource, &wanted) == 0;
}

// Gives up what a superuser may do besides; for anyone else there is nothing to give up.
bool drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    return syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

std::uint64_t address_space_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    if (!(statm >> pages)) throw std::runtime_error("/proc/self/statm can't be read");
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Walls::Walls(const std::vector<std::string>& readable) {
    prepare_files(readable);
    prepare_calls();
}

Walls::~Walls() {
    if (ruleset_ >= 0) close(ruleset_);
}

void Walls::prepare_files(const std::vector<std::string>& readable) {
    const long version =
        syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        missing_.emplace_back("files", "the kernel has no Landlock");
        return;
    }
    // Of the access rights, version 1 has thirteen; 2, 3 and 5 add one each to the end.
    const int rights = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
    // Linux's header may be older than the kernel: the fields are those of version 6.
    struct {
        std::uint64_t files, network, scoped;
    } handled{(1ULL << rights) - 1, version >= 4 ? 3ULL : 0, version >= 6 ? 3ULL : 0};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    const int made = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, size, 0));
    if (made < 0) {
        missing_.emplace_back("files", std::string("Landlock: ") + std::strerror(errno));
        return;
    }
    // Away from the low numbers, which a child fills with its own descriptors.
    ruleset_ = fcntl(made, F_DUPFD_CLOEXEC, 64);
    close(made);
    scopes_signals_ = version >= 6;
    for (const std::string& path : readable) {
        const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
        if (fd < 0) continue;  // what is not there can't be read
        struct stat status {};
        fstat(fd, &status);
        landlock_path_beneath_attr rule{};
        rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
        // Only /dev/null is not a plain file; programs silence their output with it.
        if (S_ISCHR(status.st_mode)) rule.allowed_access |= LANDLOCK_ACCESS_FS_WRITE_FILE;
        if (S_ISDIR(status.st_mode)) rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
        rule.parent_fd = fd;
        syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        close(fd);
    }
}

void Walls::prepare_calls() {
    const Libseccomp seccomp;
    if (!seccomp.usable()) {
        missing_.emplace_back("calls", "libseccomp.so.2 is not installed");
        return;
    }
    void* filter = seccomp.init(act_errno | EPERM);
    const int fd = memfd_create("filter", MFD_CLOEXEC);
    // Older versions of the library know no optimisation; the filter is then a longer list.
    if (filter != nullptr) seccomp.set_attribute(filter, attribute_optimize, 2);
    if (filter != nullptr && fd >= 0 && add_rules(seccomp, filter, ruleset_ >= 0, scopes_signals_) &&
        seccomp.write_program(filter, fd) == 0) {
        filter_ = read_program(fd);
    }
    if (filter_.empty()) missing_.emplace_back("calls", "libseccomp made no filter");
    if (fd >= 0) close(fd);
    if (filter != nullptr) seccomp.release(filter);
}

bool Walls::confine(const Limits& limits, unsigned int keep) const {
    // RLIMIT_AS rather than RLIMIT_DATA, because only RLIMIT_AS counts shared mappings.
    if (!limit(RLIMIT_AS, limits.address_space_bytes)) return false;
    if (!limit(RLIMIT_CPU, limits.cpu_seconds) || !limit(RLIMIT_FSIZE, 0)) return false;
    if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_NOFILE, 64)) return false;
    if (!limit(RLIMIT_MEMLOCK, 0) || !limit(RLIMIT_MSGQUEUE, 0)) return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) != 0 || !drop_capabilities()) return false;
    if (ruleset_ >= 0 && syscall(SYS_landlock_restrict_self, ruleset_, 0) != 0) return false;
    if (syscall(SYS_close_range, keep, ~0U, 0) != 0) return false;
    if (filter_.empty()) return true;
    const sock_fprog program{static_cast<unsigned short>(filter_.size()),
                             const_cast<sock_filter*>(filter_.data())};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0UL, 0UL) == 0;
}

std::string leave_network() {
    // Without privileges, only a user namespace of one's own gives the right to the others.
    if (unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0) return "";
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC) == 0) return "";
    return std::strerror(errno);
}

}  // namespace brood
