#include "net/endpoint.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "net/base/mutex.hpp"

namespace petacq::net {

namespace {

constexpr std::uint32_t first_number = 0xFF000000;
constexpr std::uint32_t shared_number = 0xFFFFFFFE;  // of the addresses that came too late
using Bytes = std::array<std::uint8_t, 16>;

Bytes bytes_of(const in6_addr& address) {
    Bytes bytes{};
    std::memcpy(bytes.data(), &address, bytes.size());
    return bytes;
}

/// The IPv6 addresses that this process has met.
class Numbers {
  public:
    /// `listed`: of a configuration, and not of somebody who sends.
    std::uint32_t of(const in6_addr& address, bool listed) {
        const MutexLock lock(mutex_);
        const auto known = numbers_.find(bytes_of(address));
        if (known != numbers_.end()) return known->second;
        if (!listed && met_ == max_met_addresses) return shared_number;
        met_ += listed ? 0 : 1;
        const auto number = first_number + static_cast<std::uint32_t>(addresses_.size());
        addresses_.push_back(address);
        numbers_.emplace(bytes_of(address), number);
        return number;
    }
    bool has(std::uint32_t number) {
        const MutexLock lock(mutex_);
        return number == shared_number ||
               (number >= first_number && number - first_number < addresses_.size());
    }
    /// All bits 0 if it is not the number of one.
    in6_addr address(std::uint32_t number) {
        const MutexLock lock(mutex_);
        const bool known = number >= first_number && number - first_number < addresses_.size();
        return known ? addresses_[number - first_number] : in6_addr{};
    }

  private:
    Mutex mutex_;
    std::map<Bytes, std::uint32_t> numbers_ PETACQ_GUARDED_BY(mutex_);
    std::vector<in6_addr> addresses_ PETACQ_GUARDED_BY(mutex_);
    std::size_t met_ PETACQ_GUARDED_BY(mutex_) = 0;
};

Numbers& numbers() {
    static Numbers all;
    return all;
}

std::uint32_t number_of(const in6_addr& address, bool listed) {
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
        std::uint32_t ipv4 = 0;
        std::memcpy(&ipv4, bytes_of(address).data() + 12, sizeof ipv4);
        return ntohl(ipv4);
    }
    return numbers().of(address, listed);
}

}  // namespace

std::string address_text(std::uint32_t address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_ipv6(address)) {
        const in6_addr ipv6 = ipv6_of(address);
        return inet_ntop(AF_INET6, &ipv6, text.data(), text.size());
    }
    const in_addr ipv4{htonl(address)};
    return inet_ntop(AF_INET, &ipv4, text.data(), text.size());
}

std::string to_text(Endpoint endpoint) {
    const std::string address = address_text(endpoint.address);
    return (is_ipv6(endpoint.address) ? '[' + address + ']' : address) + ':' + std::to_string(endpoint.port);
}

std::uint32_t number_of(const in6_addr& address) {
    return number_of(address, false);
}

bool is_ipv6(std::uint32_t number) {
    return number >= first_number && numbers().has(number);
}

in6_addr ipv6_of(std::uint32_t number) {
    if (is_ipv6(number)) return numbers().address(number);
    in6_addr mapped{};
    const std::uint32_t ipv4 = htonl(number);
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xFF;
    std::memcpy(&mapped.s6_addr[12], &ipv4, sizeof ipv4);
    return mapped;
}

std::uint32_t parse_address(const std::string& text, const std::string& what) {
    const sockaddr_storage address = parse_socket_address(text, what);
    if (address.ss_family == AF_INET6)
        return number_of(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, true);
    return endpoint_of(address).address;
}

bool is_address(const std::string& text, sockaddr_storage& address) {
    address = {};
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
    if (inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
        address.ss_family = AF_INET;
        return true;
    }
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
    const std::size_t percent = text.find('%');
    if (inet_pton(AF_INET6, text.substr(0, percent).c_str(), &ipv6.sin6_addr) != 1) return false;
    address.ss_family = AF_INET6;
    if (percent == std::string::npos) return true;
    ipv6.sin6_scope_id = if_nametoindex(text.c_str() + percent + 1);
    return ipv6.sin6_scope_id != 0;
}

sockaddr_storage parse_socket_address(const std::string& text, const std::string& what) {
    sockaddr_storage address{};
    if (is_address(text, address)) return address;
    throw std::runtime_error(what + ": '" + text +
                             "' is not an address; expected one like 192.168.1.10 or fd00::2");
}

bool is_multicast(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET6)
        return IN6_IS_ADDR_MULTICAST(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
    return IN_MULTICAST(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr));
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
}

socklen_t size_of(const sockaddr_storage& address) {
    return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Endpoint endpoint_of(const sockaddr_storage& address) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    const std::uint16_t port = ntohs(ipv4.sin_port);
    if (address.ss_family != AF_INET6) return {ntohl(ipv4.sin_addr.s_addr), port};
    return {number_of(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr), port};
}

SenderTable::SenderTable(std::size_t room)
    : entries_(std::bit_ceil(2 * room + 1)), mask_(entries_.size() - 1) {}

void SenderTable::insert(Endpoint sender, std::uint16_t number) {
    const std::size_t place = place_of(sender);
    assert(number != none && entries_[place].number == none && 2 * size_ < entries_.size());
    entries_[place] = {sender, number};
    ++size_;
}

void SenderTable::erase(Endpoint sender) {
    std::size_t hole = place_of(sender);
    if (entries_[hole].number == none) return;
    entries_[hole].number = none;
    --size_;
    // No search may end at the hole too early: entries behind it move up, unless they start behind it.
    for (std::size_t next = (hole + 1) & mask_; entries_[next].number != none; next = (next + 1) & mask_) {
        const std::size_t from_home = (next - home_of(entries_[next].sender)) & mask_;
        if (from_home < ((next - hole) & mask_)) continue;
        entries_[hole] = entries_[next];
        entries_[next].number = none;
        hole = next;
    }
}

}  // namespace petacq::net
