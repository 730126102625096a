#include "net/endpoint.hpp"

#include <arpa/inet.h>

#include <bit>
#include <cassert>
#include <stdexcept>

#include "config/json_schema.hpp"

namespace petacq::net {

std::string to_text(Endpoint endpoint) {
    std::string text;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        text += std::to_string(endpoint.address >> shift & 0xFFU) + (shift > 0 ? '.' : ':');
    return text + std::to_string(endpoint.port);
}

std::uint32_t parse_address(const std::string& text, const std::string& what) {
    if (const auto address = config::parse_ipv4(text)) return *address;
    in6_addr v6{};
    if (inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &v6) == 1) {
        throw std::runtime_error(what + ": '" + text +
                                 "' is an IPv6 address, which is not supported; expected an IPv4 address");
    }
    throw std::runtime_error(what + ": '" + text +
                             "' is not an IPv4 address; expected one like 192.168.1.10");
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
