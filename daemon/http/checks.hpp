// Checks on the origin of an HTTP request. A browser sends whatever any page asks it to send; these checks
// keep foreign pages from reading (by giving their host name this machine's address) and from starting or
// stopping a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace petacq::daemon {

/// Whether `host` (a Host header: name or address, with or without a port) is localhost, a numeric address or
/// one of `names`. A numeric address is safe because no foreign name server can redirect it.
bool host_is_ours(std::string_view host, const std::vector<std::string>& names);

/// Whether this daemon served the page from `origin` (an Origin header) under the name `host`.
bool origin_is_host(std::string_view origin, std::string_view host);

/// Whether the type is "application/json", with or without parameters, in upper or lower case.
bool is_json_type(std::string_view content_type);

/// Whether a Transfer-Encoding header names the one coding that the server knows, in upper or lower case.
bool is_chunked(std::string_view coding);

/// The path of a request target, without query, scheme and authority. Empty if the target has no path.
std::string_view path_of(std::string_view target);

}  // namespace petacq::daemon
