// One forked process, which will run a candidate: what the zygote knows of it, and its first steps.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "descriptor.hpp"
#include "pages.hpp"
#include "walls.hpp"

namespace brood {

// Where a child finds what it needs; all other descriptors are closed. Its standard input gave it
// the program and is at its end when the program begins.
enum ChildDescriptor { child_input = 3, child_result = 4, child_done = 5, child_descriptors = 6 };

// What a child says on `child_done`: the first by itself, the others by Python (as in wire.py).
enum ChildWord : char { word_ready = 'R', word_returned = 'V', word_raised = 'F' };

class Child {
public:
    // Forks, in a process with one thread. The new process puts up the walls, makes `pages` ready
    // and waits for a program; in it, `is_self` is true and `program` is that text.
    Child(const Walls& walls, const Limits& limits, const std::vector<Pages>& pages, int input,
          int result);
    Child(Child&&) = default;
    Child& operator=(Child&&) = default;

    bool is_self() const { return pid_ == 0; }
    const std::string& program() const { return program_; }

    // The rest is for the zygote. Hands the program over; one that has ended takes none.
    void start(const std::string& program);
    // Lets it run no further; unlike its end, that takes no time.
    void stop() const;
    void end() const;
    bool has_ended() const;
    // Waits until it has ended, by itself or not; returns its exit code, negated for a signal, and
    // 0 when it was reaped before.
    int reap();

    pid_t pid() const { return pid_; }
    int pidfd() const { return pidfd_.get(); }
    int output() const { return output_.get(); }
    int done() const { return done_.get(); }
    // The largest resident size so far, in bytes; 0 if it has ended and was not reaped.
    std::uint64_t peak_bytes() const;
    int threads() const;

private:
    pid_t pid_ = 0;
    bool reaped_ = false;
    std::uint64_t reaped_peak_ = 0;
    Descriptor pidfd_, program_pipe_, output_, done_;
    std::string program_;
};

// Has the kernel send `signal` to this process when the thread of process `parent` that started it
// ends; at once if `parent` is no longer the parent.
void die_with_parent(int parent, int signal);

// Threads of a process that still lives.
int thread_count(pid_t pid);

}  // namespace brood
