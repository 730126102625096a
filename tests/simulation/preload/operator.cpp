#include "tests/simulation/preload/operator.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

void Operator::look() {
    if (connection_ < 0) {
        PETACQ_REAL(close);
        const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
        if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            real_close(connection);
            return;
        }
        connection_ = connection;
        scheduler_.changed();
        record_.event(scheduler_.now_ns(), "connected");
    }
    PETACQ_REAL(recv);
    std::array<char, 65536> buffer;
    for (ssize_t n = 0; (n = real_recv(connection_, buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;) {
        received_.append(buffer.data(), static_cast<std::size_t>(n));
        scheduler_.changed();
    }
    for (std::size_t end = 0; (end = received_.find('\n')) != std::string::npos;) {
        record_.event(scheduler_.now_ns(), "answer", received_.substr(0, end));
        received_.erase(0, end + 1);
    }
}

void Operator::send(const std::string& line) {
    look();
    record_.event(scheduler_.now_ns(), connection_ < 0 ? "unsent" : "request", line);
    if (connection_ < 0) return;
    PETACQ_REAL(send);
    const std::string text = line + "\n";
    real_send(connection_, text.data(), text.size(), MSG_NOSIGNAL);
    scheduler_.changed();
}

}  // namespace petacq::simulation
