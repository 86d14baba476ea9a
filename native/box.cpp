#include "box.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tuple>

#include "child.hpp"
#include "scratch.hpp"

namespace brood {

namespace {

constexpr std::uint64_t box_files = 256;  // open ones of each process
constexpr int no_exit = 1 << 30;          // in a report: it had not ended

struct Report {
    int judge, candidate;
};

// Forks into namespaces of its own. The C library does not know of it: what this returns 0 in has to
// fork before anything else of it runs.
pid_t fork_into(int namespaces) {
    return static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0));
}

// Where a judge may write. Only in a mount namespace is /dev/shm the box's own.
std::vector<std::string> writable(const std::string& scratch, int namespaces) {
    if (namespaces == 0) return {scratch};
    return {scratch, "/dev/shm"};
}

// Whether this process may have such namespaces; "" or why not.
std::string try_namespaces(int namespaces) {
    const pid_t pid = fork_into(namespaces);
    if (pid == 0) _exit(EXIT_SUCCESS);
    if (pid < 0) return std::string("no PID namespace: ") + strerror(errno);
    waitpid(pid, nullptr, 0);
    return "";
}

int exit_code(int status) {
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

std::optional<int> said(int code) {
    return code == no_exit ? std::nullopt : std::optional<int>(code);
}

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    _exit(EXIT_FAILURE);
}

// Puts `sources` at the numbers 0, 1, ...
void place(const std::vector<int>& sources) {
    std::vector<int> copies;
    for (const int each : sources) copies.push_back(fcntl(each, F_DUPFD, 64));
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (dup2(copies[i], static_cast<int>(i)) < 0) give_up("descriptors");
    }
}

// Its end, or a signal from the kernel that the server has ended, is what it waits for from now on.
sigset_t waited_for() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    return set;
}

constexpr int own_namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;

}  // namespace

std::string try_box_namespaces() { return try_namespaces(own_namespaces); }

namespace {

int found_namespaces(const BoxSetup& setup, Missing& missing) {
    if (!setup.mounts) {
        missing.emplace_back("processes", "no namespaces");
        missing.emplace_back("scratch", "no namespaces");
        return 0;
    }
    const std::string why = try_box_namespaces();
    if (why.empty()) return own_namespaces;
    missing.emplace_back("processes", why);
    missing.emplace_back("scratch", why);
    return 0;
}

}  // namespace

Box::Box(BoxSetup setup)
    : setup_(std::move(setup)), namespaces_(found_namespaces(setup_, missing_)),
      walls_(Reach{setup_.readable, writable(setup_.scratch, namespaces_), true,
                   namespaces_ != 0}),
      narrow_walls_(Reach{setup_.libraries, {}, false, false}),
      self_(checked(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)))) {
    if (thread_count(getpid()) != 1) throw std::runtime_error("an imported module started threads");
    for (const auto& each : walls_.missing()) missing_.push_back(each);
}

Role Box::open(const std::vector<int>& judge, const std::vector<int>& candidate) {
    Descriptor its_report;
    std::tie(report_, its_report) = make_pipe();
    fcntl(report_.get(), F_SETFL, O_NONBLOCK);
    const sigset_t waited = waited_for();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &waited, &before);
    pid_ = fork_into(namespaces_);
    if (pid_ != 0) {
        sigprocmask(SIG_SETMASK, &before, nullptr);
        checked(pid_);
        pidfd_ = Descriptor(checked(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))));
        return Role::server;
    }
    begin();
    Limits limits{unlimited, setup_.cpu_seconds};
    limits.data_bytes = data_bytes() + setup_.memory_bytes;
    limits.file_bytes = setup_.scratch_bytes;
    limits.open_files = box_files;
    // Elsewhere the limit would count whatever else the user runs, and the watch alone counts ours.
    if (namespaces_ != 0) limits.processes = setup_.processes + 1;  // and this one
    const Limits narrow{address_space_bytes() + setup_.memory_bytes, setup_.cpu_seconds};
    pid_t pids[] = {0, 0};
    const pid_t first = getpid();
    for (const Role role : {Role::judge, Role::candidate}) {
        const bool is_judge = role == Role::judge;
        const std::vector<int>& descriptors = is_judge ? judge : candidate;
        if (descriptors.empty()) continue;
        pid_t& pid = pids[is_judge ? 0 : 1];
        pid = fork();
        if (pid < 0) give_up("fork");
        if (pid > 0) continue;
        sigprocmask(SIG_SETMASK, &before, nullptr);
        its_report.forget();  // as in `enter`
        enter(first, descriptors, is_judge ? walls_ : narrow_walls_, is_judge ? limits : narrow);
        return role;
    }
    attend(pids[0], pids[1], its_report.get());
    _exit(EXIT_SUCCESS);
}

// The first process's first steps.
void Box::begin() const {
    // The kernel ends a PID namespace with its first process; elsewhere it has to be told in time.
    prctl(PR_SET_PDEATHSIG, namespaces_ != 0 ? SIGKILL : SIGTERM, 0UL, 0UL, 0UL);
    pollfd server{self_.get(), POLLIN, 0};
    if (poll(&server, 1, 0) != 0) _exit(EXIT_FAILURE);  // it ended before that was asked for
    setsid();
    if (namespaces_ == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
        return;
    }
    const std::string why =
        mount_scratch(setup_.scratch, setup_.scratch_bytes, setup_.readable);
    if (!why.empty()) give_up(why.c_str());
    mount_processes(setup_.processes + 2);
}

// The rest of its life: it reaps whatever ends, and ends when the judge does.
void Box::attend(pid_t judge, pid_t candidate, int report) const {
    dup2(report, 0);
    syscall(SYS_close_range, 1, ~0U, 0);
    Report ends{no_exit, no_exit};
    const sigset_t waited = waited_for();
    while (ends.judge == no_exit) {
        int signal = 0;
        sigwait(&waited, &signal);
        if (signal == SIGTERM) break;
        int status = 0;
        for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (ended == judge) ends.judge = exit_code(status);
            if (ended == candidate) ends.candidate = exit_code(status);
        }
    }
    if (candidate > 0 && ends.candidate == no_exit) {
        kill(candidate, SIGKILL);
        waitpid(candidate, nullptr, 0);  // so that its memory is counted
    }
    if (namespaces_ == 0) end_all_below();
    if (write(0, &ends, sizeof ends) < 0) _exit(EXIT_FAILURE);
}

void Box::enter(pid_t first, const std::vector<int>& descriptors, Walls& walls,
                const Limits& limits) {
    die_with_parent(first, SIGKILL);
    walls.find_files();
    place(descriptors);
    for (Descriptor* each : {&pidfd_, &report_, &self_}) {
        each->forget();  // these numbers mean other files by now
    }
    if (!walls.confine(limits, static_cast<unsigned int>(descriptors.size()))) give_up("walls");
}

void Box::hurry(bool yes) {
    static const int usual = sched_getscheduler(0);
    const sched_param first{1}, none{0};
    if (yes) sched_setscheduler(0, SCHED_RR, &first);
    if (!yes) sched_setscheduler(0, usual, &none);
}

BoxEnd Box::close() {
    BoxEnd end;
    if (pid_ == 0) return end;
    const sched_param first{1};
    sched_setscheduler(pid_, SCHED_RR, &first);
    Report ends{no_exit, no_exit};
    if (read(report_.get(), &ends, sizeof ends) != sizeof ends) ends = {no_exit, no_exit};
    // Without a PID namespace it has to end the others first.
    syscall(SYS_pidfd_send_signal, pidfd_.get(), namespaces_ != 0 ? SIGKILL : SIGTERM, nullptr, 0);
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {}
    pid_ = 0;
    if (namespaces_ == 0 && !end_all_below()) {
        throw std::runtime_error("a judge's processes can't be killed");
    }
    end.judge = said(ends.judge);
    end.candidate = said(ends.candidate);
    end.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
    return end;
}

}  // namespace brood
