#include "net/endpoint.hpp"

#include <arpa/inet.h>

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

}  // namespace petacq::net
