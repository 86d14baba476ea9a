#include "workers.hpp"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "errors.hpp"
#include "standstill.hpp"

namespace nb = nanobind;

namespace brood {

namespace {

constexpr int attempts = 2;  // zygotes that a program may lose before that counts as its own fault
constexpr int none = -1;     // no connection to a zygote
constexpr std::chrono::milliseconds look_interval{1000};  // at the most, until the time is looked at

// Binds the calling thread; where the core is not to be had, it runs where it can.
void bind_to(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(static_cast<std::size_t>(core), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

// Calls a method that returns nothing, with the GIL held.
template <typename... Arguments>
void call(nb::handle object, const char* method, Arguments&&... arguments) {
    try {
        object.attr(method)(std::forward<Arguments>(arguments)...);
    } catch (nb::python_error& error) {
        error.discard_as_unraisable(method);
    }
}

}  // namespace

Workers::Workers(std::vector<nb::object> lanes, std::vector<int> cores, double seconds)
    : lanes_(std::move(lanes)), cores_(std::move(cores)), seconds_(seconds) {
    if (lanes_.size() != cores_.size()) throw nb::value_error("Expected one core for each lane");
    closing_ = checked(eventfd(0, EFD_CLOEXEC));
    try {
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            threads_.emplace_back([this, i] { attend(i); });
        }
    } catch (...) {  // the machine gives no more threads; those that run must end first
        {
            const nb::gil_scoped_release unlocked;
            close();
        }
        ::close(closing_);
        throw;
    }
}

Workers::~Workers() {
    const nb::gil_scoped_release unlocked;  // the threads may be waiting for it
    close();
    ::close(closing_);
}

bool Workers::submit(std::uint64_t ticket, std::uint32_t stage, std::int64_t order,
                     nb::bytes program) {
    Task task{ticket, stage, std::string(program.c_str(), program.size())};
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    tasks_.emplace(std::pair(order, ticket), std::move(task));
    changed_.notify_one();
    return true;
}

void Workers::close() {
    {
        const std::lock_guard lock(mutex_);
        if (!closed_) eventfd_write(closing_, 1);
        closed_ = true;
        tasks_.clear();
        changed_.notify_all();
    }
    for (std::thread& thread : threads_) {
        if (thread.joinable()) thread.join();
    }
}

bool Workers::take(Task& task) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
    if (closed_) return false;
    task = std::move(tasks_.extract(tasks_.begin()).mapped());
    return true;
}

bool Workers::is_closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
}

// One thread's life. What a lane raises from `judge` and `drop` is said on standard error, and the
// thread goes on.
void Workers::attend(std::size_t index) {
    bind_to(cores_[index]);
    const nb::handle lane = lanes_[index];
    {
        const nb::gil_scoped_acquire gil;
        PyObject* warmed = PyObject_CallMethod(lane.ptr(), "connect", nullptr);
        if (warmed == nullptr) PyErr_Clear();  // the first program is told why
        Py_XDECREF(warmed);
    }
    Task task;
    int connection = none;
    while (take(task)) {
        const auto taken = std::chrono::steady_clock::now();
        Observation observation = observe(lane, task, connection);
        const nb::gil_scoped_acquire gil;
        observation.elapsed = std::chrono::steady_clock::now() - taken;
        call(lane, "judge", task.ticket, task.stage, observation);
    }
    const nb::gil_scoped_acquire gil;
    call(lane, "drop");
}

// Has the program run. A zygote that is lost, or does not even answer that the program ran too
// long, is replaced, and the program tried once more. `connection` is the one to the present zygote:
// asking the lane for it each time would wait for the GIL once more.
Observation Workers::observe(nb::handle lane, const Task& task, int& connection) {
    Observation observation;
    for (int attempt = 0; attempt < attempts && !is_closed(); ++attempt) {
        if (connection == none) {
            const nb::gil_scoped_acquire gil;
            try {
                connection = nb::cast<int>(lane.attr("connect")());
            } catch (nb::python_error& error) {
                observation.output = nb::str(error.value()).c_str();
                continue;
            }
        }
        observation = exchange(connection, task);
        if (observation.outcome == Outcome::answered) return observation;
        connection = none;
        const nb::gil_scoped_acquire gil;
        call(lane, "drop");
    }
    return observation;
}

Observation Workers::exchange(int connection, const Task& task) const {
    Observation observation;
    const Request request{task.stage, static_cast<std::uint32_t>(task.program.size())};
    if (!send_all(connection, &request, sizeof request) ||
        !send_all(connection, task.program.data(), task.program.size())) {
        return observation;
    }
    pollfd polled[] = {{connection, POLLIN, 0}, {closing_, POLLIN, 0}};
    auto now = std::chrono::steady_clock::now();
    auto deadline = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double>(seconds_));
    while (polled[0].revents == 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
        const auto wait = std::clamp(left, std::chrono::milliseconds(0), look_interval);
        // Also once it is late: the answer may have come while this process was stopped.
        poll(polled, 2, static_cast<int>(wait.count()));
        if (polled[1].revents != 0) return observation;
        if (polled[0].revents == 0 && left.count() <= 0) {
            observation.outcome = Outcome::late;
            return observation;
        }
        const auto before = std::exchange(now, std::chrono::steady_clock::now());
        deadline += stood_still(now - before, wait);
    }
    Reply& reply = observation.reply;
    if (!receive_all(connection, &reply, sizeof reply) || reply.output_bytes > output_limit ||
        reply.processes > process_limit) {
        return Observation{};
    }
    observation.seconds.resize(reply.processes);
    observation.output.resize(reply.output_bytes);
    if (receive_all(connection, observation.seconds.data(), reply.processes * sizeof(double)) &&
        receive_all(connection, observation.output.data(), reply.output_bytes)) {
        observation.outcome = Outcome::answered;
        return observation;
    }
    return Observation{};
}

}  // namespace brood
