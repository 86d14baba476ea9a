// Threads that have programs run and judged, each bound to one core.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace brood {

// How an exchange with a zygote came out.
enum class Outcome { answered, late, lost };

// What is known of a program's run; only `output` comes from the program.
struct Observation {
    Outcome outcome = Outcome::lost;
    Reply reply{};
    std::vector<double> seconds;  // of each process that ran
    std::string output;
    std::chrono::duration<double> elapsed{};  // since the program's turn came
};

// A pool of native threads. Each belongs to one lane, an object that keeps a zygote alive:
//     connect() -> int: descriptor of a socket to a live zygote, made or replaced if need be;
//         raises if there is none to be had
//     drop(): gives the present zygote up
//     judge(ticket, stage, observation): called once for each task, whatever happened
// A thread holds the GIL in these calls only: it waits, sends and receives without it.
class Workers {
public:
    // cores: where to bind each lane's thread. seconds: how long a zygote may take to answer.
    Workers(std::vector<nanobind::object> lanes, std::vector<int> cores, double seconds);
    ~Workers();

    // Queues a program; false when the pool is closed. Those of the lowest order are run first, of
    // equal ones those of the lowest ticket.
    bool submit(std::uint64_t ticket, std::uint32_t stage, std::int64_t order,
                nanobind::bytes program);

    // Ends every thread and drops what is queued; idempotent. Call it without the GIL.
    void close();

private:
    struct Task {
        std::uint64_t ticket;
        std::uint32_t stage;
        std::string program;
    };

    void attend(std::size_t index);
    bool is_closed();
    bool take(Task& task);
    Observation observe(nanobind::handle lane, const Task& task, int& connection);
    Observation exchange(int connection, const Task& task) const;

    std::vector<nanobind::object> lanes_;
    std::vector<int> cores_;
    double seconds_;
    int closing_ = -1;  // becomes readable when the pool is closed
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::pair<std::int64_t, std::uint64_t>, Task> tasks_;  // by order and ticket
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace brood
