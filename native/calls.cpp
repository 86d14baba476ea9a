// The list of allowed system calls, made into a filter by libseccomp. Every other call fails with
// EPERM, so that a library that can do without it goes on.

#include "calls.hpp"

#include <cerrno>
#include <cstdint>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

namespace brood {

namespace {

// Of what a warm interpreter with NumPy, SciPy, numba and torch asks of the kernel, all that has
// an effect on the calling process only.
constexpr const char* allowed_calls[] = {
    // memory
    "brk", "madvise", "mmap", "mprotect", "mremap", "munmap",
    // files that Landlock lets it open, and the descriptors that it was given
    "access", "close", "dup", "faccessat", "faccessat2", "fstat", "fstatfs", "getcwd",
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
constexpr std::uint64_t all_namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                         CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr const char* signal_calls[] = {"kill", "tgkill", "tkill"};
constexpr const char* box_signal_calls[] = {"pidfd_send_signal", "rt_sigqueueinfo",
                                            "rt_tgsigqueueinfo"};

// What compilers, shells and other languages' runtimes ask for besides, in a box. Still no mounts, no
// tracing, no other core, and no memory that no process's size shows: memfd, System V.
constexpr const char* box_calls[] = {
    // processes and programs
    "fork", "vfork", "execve", "execveat", "wait4", "waitid", "arch_prctl", "getpgid", "setpgid",
    "setsid", "get_robust_list", "pidfd_open", "capget",
    // files that Landlock lets it make and change
    "chdir", "fchdir", "chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "fallocate",
    "fdatasync", "fsync", "ftruncate", "truncate", "link", "linkat", "mkdir", "mkdirat", "mknod",
    "mknodat", "openat2", "rename", "renameat", "renameat2", "rmdir", "symlink", "symlinkat",
    "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "futimesat", "flock",
    "getdents", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
    "pwrite64", "preadv", "preadv2", "pwritev", "pwritev2", "sendfile", "splice", "tee",
    "copy_file_range", "sync_file_range", "fadvise64", "readahead",
    // descriptors that lead to its own processes
    "pipe", "pipe2", "dup2", "dup3", "close_range", "eventfd", "eventfd2", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "signalfd",
    "signalfd4", "timerfd_create", "timerfd_gettime", "timerfd_settime", "pselect6", "recvfrom",
    "recvmsg", "recvmmsg", "sendmmsg", "sendmsg", "sendto", "shutdown", "getsockname",
    "getpeername", "getsockopt", "setsockopt",
    // memory, clocks, the scheduler's answers
    "mincore", "msync", "mlock", "mlock2", "munlock", "mlockall", "munlockall", "membarrier",
    "get_mempolicy", "mbind", "set_mempolicy", "setrlimit", "sched_get_priority_max",
    "sched_get_priority_min", "sched_rr_get_interval", "sched_getattr", "timer_create",
    "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "getresuid",
    "getresgid",
};
constexpr int box_fcntls[] = {F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW,
                              F_GETPIPE_SZ};
constexpr unsigned long box_ioctls[] = {FIONREAD, FIONBIO, FIOCLEX, FIONCLEX};
constexpr unsigned long terminal_ioctls[] = {TCGETS, TIOCGWINSZ};  // there is no terminal
constexpr int box_prctls[] = {PR_SET_NAME,      PR_GET_NAME,    PR_SET_PDEATHSIG, PR_GET_PDEATHSIG,
                              PR_GET_DUMPABLE,  PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS,
                              PR_GET_NO_NEW_PRIVS, PR_CAPBSET_READ, PR_SET_VMA,
                              PR_SET_TIMERSLACK, PR_SET_CHILD_SUBREAPER};

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

// The rules of a box besides the candidates'.
bool add_box_rules(const Libseccomp& seccomp, void* filter, bool signals) {
    bool added = true;
    const auto allow_values = [&](const char* name, unsigned int argument, const auto& values) {
        for (const auto value : values) {
            added = added && add_rule(seccomp, filter, act_allow, name,
                                      {{argument, compare_equal, static_cast<std::uint64_t>(value), 0}});
        }
    };
    for (const char* name : box_calls) {
        added = added && add_rule(seccomp, filter, act_allow, name);
    }
    for (const char* name : box_signal_calls) {
        added = added && (!signals || add_rule(seccomp, filter, act_allow, name));
    }
    allow_values("fcntl", 1, box_fcntls);
    allow_values("ioctl", 1, box_ioctls);
    allow_values("prctl", 0, box_prctls);
    for (const unsigned long request : terminal_ioctls) {
        added = added && add_rule(seccomp, filter, act_errno | ENOTTY, "ioctl",
                                  {{1, compare_equal, request, 0}});
    }
    // Processes as well as threads, but no namespaces.
    added = added && add_rule(seccomp, filter, act_allow, "clone",
                              {{0, compare_masked, all_namespaces, 0}});
    // Pairs of connected sockets, which can't be given an address; no other sockets.
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
        added = added && add_rule(seccomp, filter, act_allow, "socketpair",
                                  {{0, compare_equal, AF_UNIX, 0},
                                   {1, compare_masked, 0xf, static_cast<std::uint64_t>(type)}});
    }
    // Limits of its own process: it can lower them only.
    return added && add_rule(seccomp, filter, act_allow, "prlimit64", {{0, compare_equal, 0, 0}});
}

bool add_rules(const Libseccomp& seccomp, void* filter, const CallRules& rules) {
    bool added = true;
    for (const char* name : allowed_calls) {
        added = added && add_rule(seccomp, filter, act_allow, name);
    }
    if (rules.signals) {
        for (const char* name : signal_calls) {
            added = added && add_rule(seccomp, filter, act_allow, name);
        }
    }
    const std::uint64_t refused = rules.writing ? 0 : O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
    added = added && add_rule(seccomp, filter, act_allow, "open",
                              {{1, compare_masked, refused, 0}});
    added = added && add_rule(seccomp, filter, act_allow, "openat",
                              {{2, compare_masked, refused, 0}});
    // Threads, but no processes. The flags of clone3 lie in memory, where a filter can't see them;
    // told that the kernel lacks it, the C library falls back to clone.
    const std::uint64_t thread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
    added = added && add_rule(seccomp, filter, act_allow, "clone",
                              {{0, compare_masked, thread | all_namespaces, thread}});
    added = added && add_rule(seccomp, filter, act_errno | ENOSYS, "clone3");
    for (const int command : allowed_fcntls) {
        added = added && add_rule(seccomp, filter, act_allow, "fcntl",
                                  {{1, compare_equal, static_cast<std::uint64_t>(command), 0}});
    }
    // Limits may be asked for; the new ones are the third argument.
    added = added && add_rule(seccomp, filter, act_allow, "prlimit64", {{2, compare_equal, 0, 0}});
    if (rules.processes) return added && add_box_rules(seccomp, filter, rules.signals);
    // Python asks of each file whether it is a terminal.
    return added && add_rule(seccomp, filter, act_errno | ENOTTY, "ioctl");
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

}  // namespace

std::vector<sock_filter> make_call_filter(const CallRules& rules, std::string& why) {
    const Libseccomp seccomp;
    if (!seccomp.usable()) {
        why = "libseccomp.so.2 is not installed";
        return {};
    }
    std::vector<sock_filter> program;
    void* filter = seccomp.init(act_errno | EPERM);
    const int fd = memfd_create("filter", MFD_CLOEXEC);
    // Older versions of the library know no optimisation; the filter is then a longer list.
    if (filter != nullptr) seccomp.set_attribute(filter, attribute_optimize, 2);
    if (filter != nullptr && fd >= 0 && add_rules(seccomp, filter, rules) &&
        seccomp.write_program(filter, fd) == 0) {
        program = read_program(fd);
    }
    if (program.empty()) why = "libseccomp made no filter";
    if (fd >= 0) close(fd);
    if (filter != nullptr) seccomp.release(filter);
    return program;
}

}  // namespace brood
