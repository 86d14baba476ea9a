// Children are forked before there is a program for them, all that one program needs, and wait
// behind their walls. So a program starts at once, and a case that has a process of its own can
// find nothing in it of what happened in another case's. They run one after the other. A child that
// is done is stopped, and killed when the answer has been read: its end takes milliseconds on the
// core that is to judge.
//
// The first program comes from the problem itself. Which pages it touches is what each later child
// makes ready while it waits; nothing is learned from programs that are evaluated.

#include "zygote.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "errors.hpp"
#include "memory.hpp"
#include "processes.hpp"
#include "standstill.hpp"

namespace nb = nanobind;

namespace brood {

namespace {

constexpr int give_way_milliseconds = 2;  // judging takes less
constexpr double rehearsal_seconds = 1.0;  // at most; the first request waits for it
constexpr std::chrono::milliseconds look_interval{50};  // how often a child's threads are counted

// Frees the memory behind a result: what the last program left there is gone.
void clear_result(int fd) {
    checked(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, lseek(fd, 0, SEEK_END)));
}

}  // namespace

Zygote::Zygote(int connection, std::vector<std::vector<int>> inputs, std::vector<int> results,
               double seconds, std::uint64_t cpu_seconds, std::uint64_t memory_bytes,
               const std::vector<std::string>& readable)
    : connection_(connection), inputs_(std::move(inputs)), results_(std::move(results)),
      seconds_(seconds),
      limits_{address_space_bytes() + memory_bytes, cpu_seconds},
      walls_(Reach{readable, {}, false}) {
    for (const auto& stage : inputs_) {
        if (stage.empty() || stage.size() > results_.size()) {
            throw nb::value_error("Expected a result for each process of a stage, and at least one");
        }
    }
    if (thread_count(getpid()) != 1) throw std::runtime_error("an imported module started threads");
    if (syscall(SYS_close_range, ~0U, ~0U, 0) != 0) {
        throw std::runtime_error("the kernel has no close_range; Linux 5.9 or newer is needed");
    }
}

std::optional<std::pair<std::uint32_t, nb::bytes>> Zygote::serve() {
    std::uint32_t stage = 0;
    std::string program;
    if (!receive(stage, program)) return std::nullopt;
    bool in_child = rehearse(stage, program);
    while (!in_child && receive(stage, program)) {
        if (!is_ready_for(stage)) {
            dismiss();
            in_child = prepare(stage);
            if (in_child) break;
        }
        std::vector<double> seconds;
        answer(run(program, seconds_.count(), seconds), seconds);
        explicit_bzero(program.data(), program.size());  // no later child is to find it
        give_way();
        dismiss();
        output_.wipe();
        in_child = prepare(stage_);  // the next program is most likely for the same stage
    }
    if (!in_child) {
        dismiss();
        return std::nullopt;
    }
    const std::string& text = children_.back().program();
    return {{stage_, nb::bytes(text.data(), text.size())}};
}

bool Zygote::receive(std::uint32_t& stage, std::string& program) {
    Request request;
    if (!receive_all(connection_, &request, sizeof request) || request.stage >= inputs_.size()) {
        return false;
    }
    stage = request.stage;
    program.assign(request.program_bytes, '\0');
    return receive_all(connection_, program.data(), program.size());
}

// Runs a program that can be trusted, to learn which pages programs touch. Then prepares children
// for the first one that counts; returns as `prepare` does.
bool Zygote::rehearse(std::uint32_t stage, const std::string& program) {
    std::vector<double> seconds;
    for (const bool last : {false, true}) {
        if (prepare(stage)) return true;
        run(program, std::min(seconds_.count(), rehearsal_seconds), seconds);
        if (last) pages_ = touched_pages(children_.back().pid());
        dismiss();
        output_.wipe();
        // Now, not before: the first run moves more of this process's own memory about than all
        // others, and each write to a huge page that a child shares splits it.
        if (!last) make_forks_cheap();
    }
    return prepare(stage);
}

// Forks the children for a program of `stage`. Returns true in each of them, false in the zygote.
bool Zygote::prepare(std::uint32_t stage) {
    stage_ = stage;
    for (std::size_t i = 0; i < inputs_[stage].size(); ++i) {
        children_.emplace_back(walls_, limits_, pages_, inputs_[stage][i], results_[i]);
        if (children_.back().is_self()) return true;
    }
    return false;
}

bool Zygote::is_ready_for(std::uint32_t stage) const {
    return stage == stage_ && std::none_of(children_.begin(), children_.end(),
                                           [](const Child& each) { return each.has_ended(); });
}

// Ends and reaps all children, and what they may have started.
void Zygote::dismiss() {
    for (const Child& each : children_) each.end();
    for (Child& each : children_) each.reap();
    children_.clear();
    // What candidates left behind: the orphans of a dead child become this process's children.
    if (!walls_.forbids_processes() && !end_all_below()) {
        throw std::runtime_error("a candidate's processes can't be killed");
    }
}

// Has the prepared children run a program for at most `allowed` seconds; adds those of each process.
Reply Zygote::run(const std::string& program, double allowed, std::vector<double>& seconds) {
    Reply reply{};
    for (std::size_t i = 0; i < children_.size(); ++i) clear_result(results_[i]);
    for (Child& child : children_) {
        const auto started = Clock::now();
        child.start(program);
        reply.ended = watch(child, started + std::chrono::duration_cast<Clock::duration>(
                                                 std::chrono::duration<double>(allowed)));
        const auto took = Clock::now() - started - stood_;
        seconds.push_back(std::chrono::duration<double>(took).count());
        allowed -= seconds.back();
        if (reply.ended == Ended::exited || reply.ended == Ended::unconfined) {
            reply.exit_code = child.reap();
        }
        reply.peak_bytes = std::max(reply.peak_bytes, child.peak_bytes());
        child.stop();
        if (reply.ended != Ended::done || child_failed_ || &child == &children_.back()) break;
        child.end();
        child.reap();  // what its end costs is not to be counted in the next one's time
    }
    return reply;
}

// Lets the thread on the same core judge first: ending a child and forking the next one would keep
// it waiting. The next request ends this early.
void Zygote::give_way() const {
    pollfd polled{connection_, POLLIN, 0};
    poll(&polled, 1, give_way_milliseconds);
}

void Zygote::answer(Reply reply, const std::vector<double>& seconds) {
    reply.processes = static_cast<std::uint32_t>(seconds.size());
    reply.output_bytes = static_cast<std::uint32_t>(output_.size());
    send_all(connection_, &reply, sizeof reply);
    send_all(connection_, seconds.data(), seconds.size() * sizeof(double));
    send_all(connection_, output_.data(), output_.size());
}

// Collects the printed output until the child says that it is done, ends, or has to be killed. The
// time for which this process stood still, and most likely the child with it, does not count.
Ended Zygote::watch(const Child& child, Clock::time_point deadline) {
    pollfd polled[] = {
        {child.done(), POLLIN, 0}, {child.pidfd(), POLLIN, 0}, {child.output(), POLLIN, 0}};
    auto now = Clock::now();
    auto look = now + look_interval;
    child_confined_ = child_failed_ = false;
    stood_ = Clock::duration::zero();
    while (true) {
        if (now >= deadline) return Ended::deadline;
        if (now >= look) {
            if (child.threads() > thread_limit) return Ended::crowded;
            look = now + look_interval;
        }
        const auto wait =
            std::chrono::ceil<std::chrono::milliseconds>(std::min(deadline, look) - now);
        const int ready = poll(polled, 3, static_cast<int>(wait.count()));
        const auto before = std::exchange(now, Clock::now());
        const auto stood = stood_still(now - before, wait);
        stood_ += stood;
        deadline += stood;
        if (ready <= 0) continue;
        if (polled[2].revents != 0) output_.take(child.output());
        if (polled[0].revents != 0) {
            if (const auto ended = hear(child)) return *ended;
            if ((polled[0].revents & POLLHUP) != 0) polled[0].fd = -1;
        }
        if (polled[1].revents != 0) {
            output_.take(child.output());
            return child_confined_ ? Ended::exited : Ended::unconfined;
        }
        if ((polled[2].revents & POLLHUP) != 0) polled[2].fd = -1;
    }
}

// Takes in what the child said: that its walls stand, and later that its result is complete.
std::optional<Ended> Zygote::hear(const Child& child) {
    char word = 0;
    while (read(child.done(), &word, 1) == 1) {
        if (!std::exchange(child_confined_, true)) continue;
        output_.take(child.output());
        child_failed_ = word != word_returned;
        return Ended::done;
    }
    return std::nullopt;
}

void adopt_orphans() { checked(prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL)); }

}  // namespace brood
