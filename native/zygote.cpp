// One program is run in one or several processes, one after the other. For each: fork; in the
// child, put up the walls and go back to Python; in the zygote, collect the printed output until
// the child says that it is done, ends, or has to be killed. The answer is sent before the dead
// child is reaped, so that the kernel takes its memory down while the result is being scored; no
// later child is forked before it is gone.

#include "zygote.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "errors.hpp"
#include "memory.hpp"

namespace nb = nanobind;

namespace brood {

namespace {

constexpr int exit_not_confined = 71;
constexpr int kill_rounds = 5000;
constexpr std::int64_t look_ms = 50;  // how often the threads of a child are counted

// Closes on leaving its scope.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0) close(fd_);
    }
    int get() const { return fd_; }
    void forget() { fd_ = -1; }

private:
    int fd_;
};

std::pair<Descriptor, Descriptor> make_pipe() {
    int ends[2];
    checked(pipe2(ends, O_CLOEXEC));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Opens a file anew: two descriptors of one opening share its position, which a child could leave
// to the next one as a message.
int reopen(int fd, int mode) {
    return open(("/proc/self/fd/" + std::to_string(fd)).c_str(), mode | O_CLOEXEC);
}

// The largest resident size so far of a process that still lives, in bytes; 0 if it does not.
std::uint64_t peak_bytes(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) << 10;
    }
    return 0;
}

// Threads of a process that still lives; its folder has a link for each, and two of its own.
int thread_count(pid_t pid) {
    struct stat tasks {};
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    return stat(folder.c_str(), &tasks) == 0 ? static_cast<int>(tasks.st_nlink) - 2 : 0;
}

}  // namespace

struct Zygote::Child {
    pid_t pid = 0;  // 0 in the child itself
    Descriptor pidfd, output, done;
    Descriptor child_output, child_done;  // its own ends; the zygote closes them

    // In the child, where these numbers mean other files by now.
    void forget() {
        for (Descriptor* each : {&pidfd, &output, &done, &child_output, &child_done}) each->forget();
    }

    bool failed = false;  // it says so itself; the others then need not run
    std::uint64_t peak = 0;
};

Zygote::Zygote(int connection, std::vector<std::vector<int>> inputs, std::vector<int> results,
               double seconds, std::uint64_t memory_bytes, const std::vector<std::string>& readable)
    : connection_(connection), inputs_(std::move(inputs)), results_(std::move(results)),
      seconds_(seconds),
      limits_{address_space_bytes() + memory_bytes,
              static_cast<std::uint64_t>(std::ceil(seconds)) + 1}, walls_(readable) {
    for (const auto& stage : inputs_) {
        if (stage.size() > results_.size()) {
            throw nb::value_error("a stage has more processes than there are results");
        }
    }
}

std::optional<std::pair<std::uint32_t, nb::bytes>> Zygote::serve() {
    Request request;
    while (receive_all(connection_, &request, sizeof request)) {
        std::string program(request.program_bytes, '\0');
        if (request.stage >= inputs_.size() ||
            !receive_all(connection_, program.data(), program.size())) {
            break;
        }
        if (run(request)) return {{request.stage, nb::bytes(program.data(), program.size())}};
        explicit_bzero(program.data(), program.size());  // no later child is to find it
        // Now, not before: the first program moves more of this process's own memory about than
        // all others, and each write to a huge page that a child shares splits it.
        if (!std::exchange(settled_, true)) make_forks_cheap();
    }
    return std::nullopt;
}

// Returns true in a child, false in the zygote when the program has run and is answered for.
bool Zygote::run(const Request& request) {
    output_.clear();
    const auto& inputs = inputs_[request.stage];
    std::vector<double> seconds;
    Reply reply{};
    std::optional<Child> child;
    double left = seconds_.count();
    for (std::size_t index = 0; index < inputs.size(); ++index) {
        if (child) reap(*child);
        child.reset();  // here, so that the next child does not close what had these numbers
        child = start(inputs[index], results_[index]);
        if (child->pid == 0) return true;
        const auto started = Clock::now();
        reply.ended = watch(*child, started + std::chrono::duration_cast<Clock::duration>(
                                                  std::chrono::duration<double>(left)));
        seconds.push_back(std::chrono::duration<double>(Clock::now() - started).count());
        left -= seconds.back();
        if (reply.ended == Ended::exited) {
            reply.exit_code = reap(*child);
            reply.peak_bytes = std::max(reply.peak_bytes, child->peak);
            child.reset();
            break;
        }
        reply.peak_bytes = std::max(reply.peak_bytes, peak_bytes(child->pid));
        kill(child->pid, SIGKILL);
        if (reply.ended != Ended::done || child->failed) break;
    }
    reply.processes = static_cast<std::uint32_t>(seconds.size());
    reply.output_bytes = static_cast<std::uint32_t>(output_.size());
    send_all(connection_, &reply, sizeof reply);
    send_all(connection_, seconds.data(), seconds.size() * sizeof(double));
    send_all(connection_, output_.data(), output_.size());
    if (child) reap(*child);
    return false;
}

// Forks. What the last program left in the result's memory is gone before.
Zygote::Child Zygote::start(int input, int result) {
    checked(fallocate(result, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                      lseek(result, 0, SEEK_END)));
    Child child;
    std::tie(child.output, child.child_output) = make_pipe();
    std::tie(child.done, child.child_done) = make_pipe();
    fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
    const pid_t zygote = getpid();
    // Not through Python's hooks: they renew locks that other threads may have held, of which there
    // are none here, and touch a third of all the pages that a small candidate touches.
    child.pid = checked(fork());
    if (child.pid == 0) {
        die_with_parent(zygote, SIGKILL);
        become_child(child, input, result);
        child.forget();
        return child;
    }
    child.child_output = Descriptor();
    child.child_done = Descriptor();
    child.pidfd = Descriptor(checked(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0))));
    return child;
}

// Leaves six descriptors open and puts up the walls.
void Zygote::become_child(const Child& child, int input, int result) {
    const int sources[child_descriptors] = {open("/dev/null", O_RDONLY), child.child_output.get(),
                                            child.child_output.get(), reopen(input, O_RDONLY),
                                            reopen(result, O_RDWR), child.child_done.get()};
    // Copied out of the way first, so that no dup2 closes one that is still to be copied.
    int copies[child_descriptors];
    for (int i = 0; i < child_descriptors; ++i) copies[i] = fcntl(sources[i], F_DUPFD, 64);
    for (int i = 0; i < child_descriptors; ++i) dup2(copies[i], i);
    if (!walls_.confine(limits_, child_descriptors)) {
        std::perror("confine");
        _exit(exit_not_confined);
    }
}

// Collects the printed output until the child says that it is done, ends, or has to be killed.
Ended Zygote::watch(Child& child, Clock::time_point deadline) {
    pollfd polled[] = {{child.done.get(), POLLIN, 0},
                       {child.pidfd.get(), POLLIN, 0},
                       {child.output.get(), POLLIN, 0}};
    auto look = Clock::now() + std::chrono::milliseconds(look_ms);
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return Ended::deadline;
        const auto wait = std::min<std::int64_t>(left.count(), look_ms);
        const int ready = poll(polled, 3, static_cast<int>(wait));
        if (Clock::now() >= look) {
            if (thread_count(child.pid) > thread_limit) return Ended::crowded;
            look = Clock::now() + std::chrono::milliseconds(look_ms);
        }
        if (ready <= 0) continue;
        if (polled[2].revents != 0) output_.take(polled[2].fd);
        char byte;
        if ((polled[0].revents & POLLIN) != 0 && read(polled[0].fd, &byte, 1) == 1) {
            output_.take(child.output.get());
            child.failed = byte != 'V';
            return Ended::done;
        }
        if (polled[0].revents != 0) polled[0].fd = -1;  // closed without a word
        if (polled[1].revents != 0) {
            output_.take(child.output.get());
            return Ended::exited;
        }
        if ((polled[2].revents & POLLHUP) != 0) polled[2].fd = -1;
    }
}

// Waits for a child that is dead or dying, and ends what it may have left; returns its exit code.
int Zygote::reap(Child& child) {
    int status = 0;
    rusage usage{};
    while (wait4(child.pid, &status, 0, &usage) < 0 && errno == EINTR) {}
    child.peak = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
    if (!walls_.forbids_processes()) end_descendants();
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Kills children until there are none: the orphans of a dead one become children of the zygote.
void Zygote::end_descendants() {
    const std::string children = "/proc/self/task/" + std::to_string(getpid()) + "/children";
    for (int round = 0; round < kill_rounds; ++round) {
        pid_t reaped = 0;
        while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {}
        if (reaped < 0) return;
        std::ifstream list(children);
        for (pid_t pid = 0; list >> pid;) kill(pid, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw std::runtime_error("a candidate's processes can't be killed");
}

void die_with_parent(int parent, int signal) {
    checked(prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal), 0UL, 0UL, 0UL));
    // The parent may have died before the flag was set; the kernel then sends nothing.
    if (getppid() != parent) kill(getpid(), signal);
}

void adopt_orphans() { checked(prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL)); }

}  // namespace brood
