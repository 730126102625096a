// The address of another daemon's page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::config {

struct HttpUrl {
    std::string host;  ///< a name or a numeric address; IPv6 without its brackets
    std::uint16_t port = 80;
};

/// "http://hostB:9680", perhaps with a "/" at its end; absent for other text.
std::optional<HttpUrl> http_url_from(std::string_view text);

}  // namespace petacq::config
