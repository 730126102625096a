#include "tests/simulation/preload/network.hpp"

#include <linux/sock_diag.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

namespace {

std::int64_t ns_of(const timespec& t) {
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

/// The memory of the datagrams that wait in a socket, and the number of dropped ones. One of them changes
/// when a datagram arrives. A closed socket has neither.
std::optional<std::pair<std::uint32_t, std::uint32_t>> arrivals(int descriptor) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t size = sizeof memory;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, memory.data(), &size) != 0) return std::nullopt;
    return std::pair(memory[SK_MEMINFO_RMEM_ALLOC], memory[SK_MEMINFO_DROPS]);
}

}  // namespace

void Network::send(std::size_t from, std::span<const std::byte> datagram) {
    if (daemon_.empty()) return;
    PETACQ_REAL(clock_gettime);
    PETACQ_REAL(sched_yield);
    PETACQ_REAL(sendto);
    if (socket_ < 0) socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    timespec now{};
    real_clock_gettime(CLOCK_REALTIME, &now);
    sent_.emplace_back(ns_of(now), scheduler_.now_ns());
    const Receiver& to = daemon_[from % daemon_.size()];
    const auto before = arrivals(to.descriptor);
    if (real_sendto(socket_, datagram.data(), datagram.size(), 0,
                    reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address) < 0)
        return;
    // The kernel of a busy host may deliver it only after a while.
    constexpr std::int64_t longest_ns = 5'000'000'000;
    while (before && arrivals(to.descriptor) == before && ns_of(now) < sent_.back().first + longest_ns) {
        real_sched_yield();
        real_clock_gettime(CLOCK_REALTIME, &now);
    }
    record_.arrived(scheduler_.now_ns(), datagram);
    scheduler_.changed();
}

std::int64_t Network::arrival_ns(const timespec& stamp) const {
    const auto after = std::upper_bound(sent_.begin(), sent_.end(), std::pair(ns_of(stamp), INT64_MAX));
    return after == sent_.begin() ? scheduler_.now_ns() : std::prev(after)->second;
}

}  // namespace petacq::simulation
