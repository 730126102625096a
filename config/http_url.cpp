#include "config/http_url.hpp"

#include <charconv>

namespace petacq::config {

namespace {

constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool made_of(std::string_view text, const std::string& characters) {
    return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

std::optional<std::uint16_t> port_from(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || port == 0) return {};
    return port;
}

}  // namespace

std::optional<HttpUrl> http_url_from(std::string_view text) {
    constexpr std::string_view scheme = "http://";
    if (!text.starts_with(scheme)) return {};
    text.remove_prefix(scheme.size());
    if (text.ends_with('/')) text.remove_suffix(1);

    HttpUrl url;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return {};
        url.host = text.substr(1, end - 1);
        rest = text.substr(end + 1);
        if (!made_of(url.host, "0123456789abcdefABCDEF:.")) return {};
    } else {
        const std::size_t end = text.find(':');
        url.host = text.substr(0, end);
        if (end != std::string_view::npos) rest = text.substr(end);
        if (!made_of(url.host, std::string(letters_and_digits) + "-_.") || url.host.front() == '-') return {};
    }
    if (rest.empty()) return url;
    const auto port = rest.front() == ':' ? port_from(rest.substr(1)) : std::nullopt;
    if (!port) return {};
    url.port = *port;
    return url;
}

}  // namespace petacq::config
