#include "daemon/placement/wish.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

namespace petacq::daemon {

namespace {

/// An IPv4 or IPv6 address, in the bytes of the latter.
using Address = std::array<unsigned char, sizeof(in6_addr)>;

std::optional<Address> address_of(const std::string& text) {
    Address address{};
    if (inet_pton(AF_INET, text.c_str(), address.data()) == 1) return address;
    if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
    return std::nullopt;
}

Address address_of(const sockaddr& socket) {
    Address address{};
    if (socket.sa_family == AF_INET) {
        std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in&>(socket).sin_addr, sizeof(in_addr));
    } else {
        std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(socket).sin6_addr,
                    sizeof(in6_addr));
    }
    return address;
}

struct InterfaceAddress {
    std::string interface;
    Address address;
    bool carries = false;  ///< is up, and no loopback
};

std::vector<InterfaceAddress> addresses_of_host() {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
    std::vector<InterfaceAddress> all;
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr ||
            (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
            continue;
        const bool carries = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0;
        all.push_back({i->ifa_name, address_of(*i->ifa_addr), carries});
    }
    return all;
}

void add(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

std::vector<std::string> interfaces_of(const net::ReceiverOptions& receiver, const std::string& system) {
    std::vector<std::string> names;
    const std::string& chosen =
        receiver.multicast_interface.empty() ? receiver.address : receiver.multicast_interface;
    const std::size_t scope = chosen.find('%');
    const std::optional<Address> address = address_of(chosen.substr(0, scope));
    if (scope != std::string::npos) {
        names.push_back(chosen.substr(scope + 1));
    } else if (!address) {
        names.push_back(chosen);
    } else {
        const bool any = *address == Address{} || !receiver.multicast_groups.empty();
        for (const InterfaceAddress& i : addresses_of_host()) {
            const bool of_any = any && receiver.multicast_interface.empty();
            if (of_any ? i.carries : i.address == *address) add(names, i.interface);
        }
    }
    namespace fs = std::filesystem;
    for (std::size_t i = 0; i < names.size(); ++i) {
        std::error_code ignored;
        for (const auto& entry : fs::directory_iterator(fs::path(system) / "class/net" / names[i], ignored)) {
            const std::string link = entry.path().filename().string();
            if (link.starts_with("lower_")) add(names, link.substr(std::strlen("lower_")));
        }
    }
    return names;
}

PlacementWish placement_wish(const config::Configuration& configuration,
                             std::span<const net::ReceiverOptions> receivers, const std::string& gpu) {
    const bool wanted = configuration.placement == config::PlacementRule::automatic;
    PlacementWish wish;
    for (const net::ReceiverOptions& receiver : receivers) {
        wish.receivers.push_back({receiver.cores, {}});
        if (wanted && receiver.cores.empty()) wish.receivers.back().interfaces = interfaces_of(receiver);
    }
    if (!wanted) return wish;
    wish.gpu = gpu;
    // Those that upload, launch and hand out; the threads that help them to copy are idle most of the time.
    constexpr std::size_t of_pipeline = 3;
    wish.result_threads =
        of_pipeline + std::size_t{configuration.listmode.files} * configuration.record_kinds();
    return wish;
}

}  // namespace petacq::daemon
