// Whom an HTTP request may come from. A browser carries out what any page asks it to; these checks keep
// foreign pages from reading (a name that suddenly means this machine) and from starting or stopping a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace petacq::daemon {

/// Whether `host` (a Host header: name or address, with or without a port) is localhost, a numeric address or
/// one of `names`. A numeric address cannot be made to mean another machine.
bool host_is_ours(std::string_view host, const std::vector<std::string>& names);

/// Whether a page from `origin` (an Origin header) is one that this daemon served under `host`.
bool origin_is_host(std::string_view origin, std::string_view host);

/// "application/json", parameters or not, in any case.
bool is_json_type(std::string_view content_type);

/// The path of a request target: without query, and without scheme and authority if it has them. Empty when
/// it is none.
std::string_view path_of(std::string_view target);

}  // namespace petacq::daemon
