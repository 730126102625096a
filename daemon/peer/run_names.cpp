#include "daemon/peer/run_names.hpp"

#include <algorithm>

namespace petacq::daemon {

std::string joined_run(const std::string& run, const std::function<bool(const std::string&)>& has) {
    const std::size_t dash = run.rfind('-');
    if (dash == std::string::npos || dash + 1 == run.size()) return run;
    const bool number = std::all_of(run.begin() + static_cast<std::ptrdiff_t>(dash) + 1, run.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
    const std::string base = run.substr(0, dash);
    return number && has(base) ? base : run;
}

bool same_run(const std::string& a, const std::string& b) {
    const auto either = [&](const std::string& id) { return id == a || id == b; };
    return joined_run(a, either) == joined_run(b, either);
}

}  // namespace petacq::daemon
