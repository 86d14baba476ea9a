// The zygote's loop: forks a fresh child for each process that a program needs, watches and ends it.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "printed.hpp"
#include "protocol.hpp"
#include "walls.hpp"

namespace brood {

// Where a child finds what it needs; all other descriptors are closed.
enum ChildDescriptor { child_input = 3, child_result = 4, child_done = 5, child_descriptors = 6 };

// Single-threaded, so that forking is safe. It never runs a candidate's code, and never reads what
// a candidate wrote, except for its printed output, which it passes on.
class Zygote {
public:
    // connection: stream socket to the thread that this zygote serves.
    // inputs: one list for each stage of the problem; one descriptor for each of its processes.
    // results: shared memory for the result of process 0, 1, ... of a program.
    // seconds: the most that all processes of one program may take.
    Zygote(int connection, std::vector<std::vector<int>> inputs, std::vector<int> results,
           double seconds, std::uint64_t memory_bytes, const std::vector<std::string>& readable);

    // Serves until the connection ends. Returns the stage and the program's text in each forked
    // child, and nothing in the zygote itself.
    std::optional<std::pair<std::uint32_t, nanobind::bytes>> serve();

    const Walls& walls() const { return walls_; }

private:
    using Clock = std::chrono::steady_clock;
    struct Child;

    bool run(const Request& request);
    Child start(int input, int result);
    void become_child(const Child& child, int input, int result);
    Ended watch(Child& child, Clock::time_point deadline);
    int reap(Child& child);
    void end_descendants();

    int connection_;
    std::vector<std::vector<int>> inputs_;
    std::vector<int> results_;
    std::chrono::duration<double> seconds_;
    Limits limits_;
    Walls walls_;
    bool settled_ = false;
    Printed output_;
};

// Has the kernel send `signal` to this process when the thread of process `parent` that started it
// ends; at once if `parent` is no longer the parent.
void die_with_parent(int parent, int signal);

// Makes this process the parent of its descendants' orphans, instead of init.
void adopt_orphans();

}  // namespace brood
