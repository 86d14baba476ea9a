// What a pinned thread and its zygote say to each other, over a stream socket of one machine.
//
// Thread to zygote: a Request and the program's text. Zygote to thread: a Reply, one double for
// each process that ran (its wall seconds), and the end of what the program printed. The first
// request is a rehearsal with a program that can be trusted; it gets no reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/socket.h>

#include <cerrno>

namespace brood {

struct Request {
    std::uint32_t stage;
    std::uint32_t program_bytes;
};

// How the last process of a program came to its end.
enum class Ended : std::uint32_t {
    done = 0,      // it said that its result is complete
    exited = 1,    // it ended, by itself or by a signal, before it said so
    deadline = 2,  // it was killed at the time limit
    crowded = 3,   // it was killed because it had more threads than `thread_limit`
    unconfined = 4,  // it ended before its walls stood
    memory = 5,      // of a box: its processes took too much memory together
    scratch = 6,     // of a box: it filled a scratch folder that has no bound of its own
};

struct Reply {
    Ended ended;
    std::int32_t exit_code;  // negated signal number when a signal ended it; 0 when done
    std::uint64_t peak_bytes;
    std::uint32_t processes;
    std::uint32_t output_bytes;
};

constexpr int thread_limit = 64;
constexpr std::uint32_t process_limit = 1 << 16;  // for one program
constexpr std::size_t output_limit = 2048;  // how much of the end of the printed output is kept

// Sends or receives exactly `size` bytes; false when the other side is gone.
inline bool send_all(int fd, const void* data, std::size_t size) {
    auto from = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t sent = send(fd, from, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        from += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

inline bool receive_all(int fd, void* data, std::size_t size) {
    auto to = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t received = recv(fd, to, size, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) return false;
        to += received;
        size -= static_cast<std::size_t>(received);
    }
    return true;
}

}  // namespace brood
