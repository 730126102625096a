// The names of a run on hosts that hear the same boards: a host that joins in the middle of mouse-7 again
// calls its part mouse-7-2.
#pragma once

#include <functional>
#include <string>

namespace petacq::daemon {

/// The id of a run without the number that `petctl join` adds to it: mouse-7 of mouse-7-2, if `has` says that
/// there is a run of this id.
std::string joined_run(const std::string& run, const std::function<bool(const std::string&)>& has);

/// Whether two hosts with these runs in progress record the same one.
bool same_run(const std::string& a, const std::string& b);

}  // namespace petacq::daemon
