#include "daemon/http/checks.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/base/json_schema.hpp"

namespace petacq::daemon {

namespace {

bool same(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool is_port(std::string_view text) {
    return text.size() <= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The host without its port; empty if the port is malformed.
std::string_view without_port(std::string_view host) {
    const std::size_t bracket = host.rfind(']');
    const std::size_t colon = host.rfind(':');
    if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket))
        return host;
    return is_port(host.substr(colon + 1)) ? host.substr(0, colon) : std::string_view();
}

}  // namespace

bool host_is_ours(std::string_view host, const std::vector<std::string>& names) {
    const std::string name(without_port(host));
    if (name.empty()) return false;
    if (same(name, "localhost")) return true;
    std::array<unsigned char, sizeof(in6_addr)> address{};
    if (name.front() == '[') {
        return name.back() == ']' &&
               inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), address.data()) == 1;
    }
    if (config::parse_ipv4(name)) return true;
    return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return same(n, name); });
}

bool origin_is_host(std::string_view origin, std::string_view host) {
    // A proxy in front of the daemon may use https.
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (origin.substr(0, scheme.size()) == scheme) return same(origin.substr(scheme.size()), host);
    }
    return false;
}

bool is_json_type(std::string_view content_type) {
    std::string_view type = content_type.substr(0, content_type.find(';'));
    while (!type.empty() && (type.back() == ' ' || type.back() == '\t'))
        type.remove_suffix(1);
    return same(type, "application/json");
}

bool is_chunked(std::string_view coding) {
    return same(coding, "chunked");
}

std::string_view path_of(std::string_view target) {
    constexpr std::string_view scheme = "http://";
    if (same(target.substr(0, scheme.size()), scheme)) {
        const std::size_t slash = target.find('/', scheme.size());
        target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    }
    if (target.empty() || target.front() != '/') return {};
    return target.substr(0, target.find('?'));
}

}  // namespace petacq::daemon
