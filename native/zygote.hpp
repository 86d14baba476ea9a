// The zygote's loop: keeps fresh children ready, gives them a program, watches and ends them.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "child.hpp"
#include "pages.hpp"
#include "printed.hpp"
#include "protocol.hpp"
#include "walls.hpp"

namespace brood {

// Single-threaded, so that forking is safe. It never runs a candidate's code, and never reads what
// a candidate wrote, except for its printed output, which it passes on.
class Zygote {
public:
    // connection: stream socket to the thread that this zygote serves.
    // inputs: one list for each stage of the problem; one descriptor for each of its processes.
    // results: shared memory for the result of process 0, 1, ... of a program.
    // seconds: the most that all processes of one program may take.
    // cpu_seconds: of a core, the most that each of them may have.
    // Throws std::runtime_error where the kernel, or a thread, makes forking children impossible.
    Zygote(int connection, std::vector<std::vector<int>> inputs, std::vector<int> results,
           double seconds, std::uint64_t cpu_seconds, std::uint64_t memory_bytes,
           const std::vector<std::string>& readable);

    // Rehearses the first program, then serves until the connection ends. Returns the stage and the program's text in each forked
    // child, and nothing in the zygote itself.
    std::optional<std::pair<std::uint32_t, nanobind::bytes>> serve();

    const Walls& walls() const { return walls_; }

private:
    using Clock = std::chrono::steady_clock;

    bool receive(std::uint32_t& stage, std::string& program);
    bool rehearse(std::uint32_t stage, const std::string& program);
    bool prepare(std::uint32_t stage);
    bool is_ready_for(std::uint32_t stage) const;
    void dismiss();
    Reply run(const std::string& program, double allowed, std::vector<double>& seconds);
    Ended watch(const Child& child, Clock::time_point deadline);
    std::optional<Ended> hear(const Child& child);
    void answer(Reply reply, const std::vector<double>& seconds);
    void give_way() const;

    int connection_;
    std::vector<std::vector<int>> inputs_;
    std::vector<int> results_;
    std::chrono::duration<double> seconds_;
    Limits limits_;
    Walls walls_;
    std::vector<Child> children_;  // one for each process that a program of `stage_` needs
    std::uint32_t stage_ = 0;
    std::vector<Pages> pages_;  // what each child makes ready
    bool child_confined_ = false;
    bool child_failed_ = false;
    Clock::duration stood_{};  // how long this process stood still while it watched the last child
    Printed output_;
};

// Makes this process the parent of its descendants' orphans, instead of init.
void adopt_orphans();

}  // namespace brood
