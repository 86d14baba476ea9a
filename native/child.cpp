#include "child.hpp"

#include <csignal>
#include <cstdio>
#include <fstream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tuple>

namespace brood {

namespace {

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    _exit(EXIT_FAILURE);
}

// Opens a file anew: two descriptors of one opening share its position, which a child could leave
// to the next one as a message.
int reopen(int fd, int mode) {
    return open(("/proc/self/fd/" + std::to_string(fd)).c_str(), mode | O_CLOEXEC);
}

// Puts `sources` at the numbers 0, 1, ... Copied out of the way first, so that none is overwritten
// before it is copied.
template <std::size_t count> void place(const int (&sources)[count]) {
    int copies[count];
    for (std::size_t i = 0; i < count; ++i) copies[i] = fcntl(sources[i], F_DUPFD, 64);
    for (std::size_t i = 0; i < count; ++i) {
        if (dup2(copies[i], static_cast<int>(i)) < 0) give_up("descriptors");
    }
}

std::string read_all(int fd) {
    std::string text;
    char buffer[1 << 14];
    for (ssize_t bytes; (bytes = read(fd, buffer, sizeof buffer)) != 0;) {
        if (bytes < 0 && errno != EINTR) give_up("the program can't be read");
        if (bytes > 0) text.append(buffer, static_cast<std::size_t>(bytes));
    }
    return text;
}

}  // namespace

Child::Child(const Walls& walls, const Limits& limits, const std::vector<Pages>& pages, int input,
             int result) {
    Descriptor its_program, its_output, its_done;
    std::tie(its_program, program_pipe_) = make_pipe();
    std::tie(output_, its_output) = make_pipe();
    std::tie(done_, its_done) = make_pipe();
    fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    fcntl(done_.get(), F_SETFL, O_NONBLOCK);
    const pid_t zygote = getpid();
    // Not through Python's hooks: they renew locks that other threads may have held, of which there
    // are none here, and touch a third of all the pages that a small candidate touches.
    pid_ = checked(fork());
    if (pid_ != 0) {
        pidfd_ = Descriptor(checked(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))));
        return;
    }
    die_with_parent(zygote, SIGKILL);
    place({its_program.get(), its_output.get(), its_output.get(), reopen(input, O_RDONLY),
           reopen(result, O_RDWR), its_done.get()});
    for (Descriptor* each : {&its_program, &its_output, &its_done, &program_pipe_, &output_, &done_}) {
        each->forget();  // these numbers mean other files by now
    }
    if (!walls.confine(limits, child_descriptors)) give_up("walls");
    const char word = word_ready;
    if (write(child_done, &word, 1) != 1) give_up("the zygote is gone");
    make_ready(pages, STDIN_FILENO);
    program_ = read_all(STDIN_FILENO);
}

void Child::start(const std::string& program) {
    const char* from = program.data();
    for (std::size_t left = program.size(); left > 0;) {
        const ssize_t written = write(program_pipe_.get(), from, left);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) break;  // it has ended; Python has SIGPIPE ignored
        from += written;
        left -= static_cast<std::size_t>(written);
    }
    program_pipe_.reset();
}

// Not by its number, which may be another process's once it is reaped.
void Child::end() const { syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

void Child::stop() const { syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGSTOP, nullptr, 0); }

bool Child::has_ended() const {
    pollfd polled{pidfd_.get(), POLLIN, 0};
    return poll(&polled, 1, 0) != 0;
}

int Child::reap() {
    int status = 0;
    rusage usage{};
    if (reaped_) return 0;
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {}
    reaped_ = true;
    reaped_peak_ = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

std::uint64_t Child::peak_bytes() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) << 10;
    }
    return reaped_peak_;
}

int Child::threads() const { return thread_count(pid_); }

void die_with_parent(int parent, int signal) {
    checked(prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal), 0UL, 0UL, 0UL));
    // The parent may have died before the flag was set; the kernel then sends nothing.
    if (getppid() != parent) kill(getpid(), signal);
}

int thread_count(pid_t pid) {
    // The folder has a link for each thread, and two of its own.
    struct stat tasks {};
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    return stat(folder.c_str(), &tasks) == 0 ? static_cast<int>(tasks.st_nlink) - 2 : 0;
}

}  // namespace brood
