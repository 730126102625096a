#include "daemon/preflight/memory.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "net/receive/udp_socket.hpp"

namespace petacq::daemon {

namespace {

double mebibytes(std::uint64_t bytes) {
    return static_cast<double>(bytes) / 0x1p20;
}

std::uint64_t pool_bytes(const config::Receive& receive) {
    return std::uint64_t{receive.batch_count} * receive.batch_bytes;
}

/// The size of the receive buffer that the kernel grants to a socket of this process.
std::size_t granted_buffer(std::size_t asked) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 0;
    const std::size_t granted = net::request_receive_buffer(fd, asked, true);
    ::close(fd);
    return granted;
}

Finding check_socket_buffers(const config::Receive& receive) {
    constexpr const char* subject = "socket buffers";
    std::ifstream in("/proc/sys/net/core/rmem_max");
    std::uint64_t most = 0;
    if (!(in >> most)) return {Level::note, subject, "the kernel does not show net.core.rmem_max", ""};
    const std::uint64_t asked = receive.receive_buffer_bytes;
    if (most >= asked) {
        return {Level::good, subject,
                fmt::format("{:.4g} MiB each (net.core.rmem_max allows {:.4g} MiB)", mebibytes(asked),
                            mebibytes(most)),
                ""};
    }
    if (granted_buffer(asked) >= asked) {
        return {Level::note, subject,
                fmt::format("{:.4g} MiB each, by CAP_NET_ADMIN; without it the kernel grants {:.4g} MiB "
                            "(net.core.rmem_max)",
                            mebibytes(asked), mebibytes(most)),
                ""};
    }
    return {Level::warning, subject,
            fmt::format("receive.receive_buffer_bytes asks for {} bytes, the kernel grants {} "
                        "(net.core.rmem_max): datagrams are lost at a shorter stop",
                        asked, most),
            fmt::format(
                "sudo sysctl -w net.core.rmem_max={0}; to keep it: echo 'net.core.rmem_max = {0}' | sudo tee "
                "/etc/sysctl.d/60-petacqd.conf. Sockets of petacqd.socket need ReceiveBuffer= instead",
                asked)};
}

std::string drop_in(const std::string& lines) {
    return "sudo systemctl edit petacqd: " + lines + ", then sudo systemctl restart petacqd";
}

Finding check_locked_memory(const config::Receive& receive) {
    constexpr const char* subject = "locked memory";
    const std::uint64_t needed = pool_bytes(receive);
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return {Level::note, subject, "the system does not show the limit", ""};
    if (::geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) {
        return {Level::good, subject,
                fmt::format("{:.4g} MiB of receive buffers may be locked", mebibytes(needed)), ""};
    }
    return {
        Level::warning, subject,
        fmt::format("receive.lock_memory wants {:.4g} MiB, this user may lock {:.4g} MiB (ulimit -l): the "
                    "buffers could be swapped out",
                    mebibytes(needed), mebibytes(limit.rlim_cur)),
        "the packaged service has LimitMEMLOCK=infinity; another one: " +
            drop_in("[Service] LimitMEMLOCK=infinity") +
            ". By hand: sudo prlimit --pid $$ --memlock=unlimited, in the shell that starts petacqd"};
}

/// A line of /proc/meminfo, "HugePages_Free:  12", without its unit.
std::optional<std::uint64_t> meminfo(const std::string& name) {
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1));
    }
    return std::nullopt;
}

Finding check_huge_pages(const config::Receive& receive) {
    constexpr const char* subject = "huge pages";
    constexpr std::uint64_t page = std::uint64_t{2} << 20;
    const std::uint64_t needed = (pool_bytes(receive) + page - 1) / page;
    const auto free = meminfo("HugePages_Free");
    if (!free) return {Level::note, subject, "the kernel does not show /proc/meminfo", ""};
    if (meminfo("Hugepagesize").value_or(2048) != 2048) {
        return {Level::note, subject,
                "the kernel's huge pages are not of 2 MiB: the pool may get ordinary ones", ""};
    }
    if (*free >= needed)
        return {Level::good, subject, fmt::format("{} of 2 MiB are free, {} are needed", *free, needed), ""};
    const std::uint64_t total = meminfo("HugePages_Total").value_or(0) + needed - *free;
    return {
        Level::warning, subject,
        fmt::format("receive.huge_pages wants {} of 2 MiB, {} are free: the pool gets ordinary ones", needed,
                    *free),
        fmt::format("sudo sysctl -w vm.nr_hugepages={0}; to keep it: echo 'vm.nr_hugepages = {0}' | sudo tee "
                    "/etc/sysctl.d/61-petacqd.conf",
                    total)};
}

}  // namespace

Findings check_memory(const config::Configuration& configuration) {
    const config::Receive& receive = configuration.receive;
    Findings findings{check_socket_buffers(receive)};
    if (receive.lock_memory) findings.push_back(check_locked_memory(receive));
    if (receive.huge_pages) findings.push_back(check_huge_pages(receive));
    return findings;
}

}  // namespace petacq::daemon
