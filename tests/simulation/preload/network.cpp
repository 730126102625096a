#include "tests/simulation/preload/network.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

namespace {

std::int64_t ns_of(const timespec& t) {
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

}  // namespace

void Network::send(std::size_t from, std::span<const std::byte> datagram) {
    if (daemon_.empty()) return;
    PETACQ_REAL(clock_gettime);
    PETACQ_REAL(sendto);
    if (socket_ < 0) socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    timespec now{};
    real_clock_gettime(CLOCK_REALTIME, &now);
    sent_.emplace_back(ns_of(now), scheduler_.now_ns());
    const sockaddr_in& to = daemon_[from % daemon_.size()];
    if (real_sendto(socket_, datagram.data(), datagram.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                    sizeof to) < 0)
        return;
    record_.arrived(scheduler_.now_ns(), datagram);
    scheduler_.changed();
}

std::int64_t Network::arrival_ns(const timespec& stamp) const {
    const auto after = std::upper_bound(sent_.begin(), sent_.end(), std::pair(ns_of(stamp), INT64_MAX));
    return after == sent_.begin() ? scheduler_.now_ns() : std::prev(after)->second;
}

}  // namespace petacq::simulation
