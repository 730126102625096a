#include "net/receive/multicast.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "net/receive/receiver.hpp"

namespace petacq::net {

namespace {

std::string reason() {
    return std::generic_category().message(errno);
}

bool same_address(const sockaddr* a, const sockaddr_storage& b) {
    if (a == nullptr || a->sa_family != b.ss_family) return false;
    if (a->sa_family == AF_INET6) {
        return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                           &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
    }
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
}

/// The index of the interface with that address; 0: none has it.
unsigned interface_with(const sockaddr_storage& address) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return 0;
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        if (same_address(one->ifa_addr, address)) return ::if_nametoindex(one->ifa_name);
    }
    return 0;
}

/// The index of the interface on which the system would send to the group; 0: there is no route.
unsigned routed_interface(const sockaddr_storage& group) {
    const int probe = ::socket(group.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0) return 0;
    sockaddr_storage to = group;
    set_port(to, 9);  // any will do, since nothing is sent
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const bool routed = ::connect(probe, reinterpret_cast<const sockaddr*>(&to), size_of(to)) == 0 &&
                        ::getsockname(probe, reinterpret_cast<sockaddr*>(&from), &size) == 0;
    ::close(probe);
    if (!routed) return 0;
    if (from.ss_family == AF_INET6) {
        if (const auto scope = reinterpret_cast<const sockaddr_in6&>(from).sin6_scope_id; scope != 0)
            return scope;
    }
    return interface_with(from);
}

bool is_up(int socket, unsigned index) {
    ifreq request{};
    if (::if_indextoname(index, request.ifr_name) == nullptr) return false;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    return ::ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
}

}  // namespace

Memberships::Memberships(const ReceiverOptions& options, const std::string& what)
    : level_(parse_socket_address(options.address, what).ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP),
      interface_(options.multicast_interface),
      may_be_member_(options.descriptor >= 0) {
    const auto of_family = [&](const std::string& text, const std::string& purpose) {
        sockaddr_storage address = parse_socket_address(text, purpose);
        if (address.ss_family == (level_ == IPPROTO_IPV6 ? AF_INET6 : AF_INET)) return address;
        throw std::runtime_error(purpose + ": " + text + " is of another family than the address " +
                                 options.address);
    };
    for (const std::string& text : options.multicast_groups) {
        groups_.push_back({text, of_family(text, what + ": multicast group")});
        if (is_multicast(groups_.back().address)) continue;
        throw std::runtime_error(what + ": multicast group: " + text +
                                 " is not a multicast address; expected 224.0.0.0 to 239.255.255.255, or "
                                 "one that begins with ff");
    }
    for (const std::string& text : options.multicast_sources)
        sources_.push_back(of_family(text, what + ": multicast source"));
}

void Memberships::refresh(int socket) {
    for (MulticastGroup& group : groups_)
        refresh(socket, group);
    const MutexLock lock(mutex_);
    published_.clear();
    for (const MulticastGroup& group : groups_)
        published_.push_back({group.text, interface_, group.trouble});
}

void Memberships::refresh(int socket, MulticastGroup& group) {
    unsigned index = 0;
    group.trouble.clear();
    find_interface(group, index, group.trouble);
    if (group.joined != 0 && index != group.joined) leave(socket, group);
    if (index != 0 && group.joined == 0) {
        group.trouble = join(socket, group, index);
        if (group.trouble.empty()) group.joined = index;
    }
    if (group.joined != 0 && !is_up(socket, group.joined)) {
        std::array<char, IF_NAMESIZE> name{};
        ::if_indextoname(group.joined, name.data());
        group.trouble = "the interface " + std::string(name.data()) + " is down";
    }
}

void Memberships::find_interface(const MulticastGroup& group, unsigned& index, std::string& trouble) const {
    if (interface_.empty()) {
        std::array<char, IF_NAMESIZE> name{};
        // What the system chose stays, as long as it exists.
        const bool exists = group.joined != 0 && ::if_indextoname(group.joined, name.data()) != nullptr;
        index = exists ? group.joined : routed_interface(group.address);
        if (index == 0) trouble = "no route leads to it, and no multicast_interface is given";
        return;
    }
    if (sockaddr_storage address{}; is_address(interface_, address)) {
        index = interface_with(address);
        if (index == 0) trouble = "no interface has the address " + interface_;
        return;
    }
    index = ::if_nametoindex(interface_.c_str());
    if (index == 0) trouble = "there is no interface " + interface_;
}

/// Why the group cannot be joined there; empty: it is.
std::string Memberships::join(int socket, const MulticastGroup& group, unsigned index) const {
    // Otherwise datagrams for groups that other sockets joined would arrive here, too.
    const int off = 0;
    ::setsockopt(socket, level_, level_ == IPPROTO_IPV6 ? IPV6_MULTICAST_ALL : IP_MULTICAST_ALL, &off,
                 sizeof off);
    const auto refused = [&](int result) { return result != 0 && !(may_be_member_ && errno == EADDRINUSE); };
    if (sources_.empty()) {
        group_req request{};
        request.gr_interface = index;
        request.gr_group = group.address;
        return refused(::setsockopt(socket, level_, MCAST_JOIN_GROUP, &request, sizeof request)) ? reason()
                                                                                                 : "";
    }
    for (const sockaddr_storage& source : sources_) {
        group_source_req request{};
        request.gsr_interface = index;
        request.gsr_group = group.address;
        request.gsr_source = source;
        if (refused(::setsockopt(socket, level_, MCAST_JOIN_SOURCE_GROUP, &request, sizeof request))) {
            std::string why = reason();
            if (errno == ENOBUFS) why += " (net.ipv4.igmp_max_msf limits the sources of a group)";
            return why;
        }
    }
    return "";
}

// With its sources; the interface may be gone.
void Memberships::leave(int socket, MulticastGroup& group) const {
    group_req request{};
    request.gr_interface = group.joined;
    request.gr_group = group.address;
    ::setsockopt(socket, level_, MCAST_LEAVE_GROUP, &request, sizeof request);
    group.joined = 0;
}

std::vector<Membership> Memberships::published() const {
    const MutexLock lock(mutex_);
    return published_;
}

}  // namespace petacq::net
