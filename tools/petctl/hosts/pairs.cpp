#include "tools/petctl/hosts/pairs.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace petacq::petctl {

HostPairs::HostPairs(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        std::vector<std::string>& unit = units_.emplace_back();
        for (std::size_t start = 0;;) {
            const std::size_t end = word.find('+', start);
            unit.push_back(word.substr(start, end - start));
            if (end == std::string::npos) break;
            start = end + 1;
        }
    }
}

std::vector<std::string> HostPairs::names() const {
    std::vector<std::string> names;
    for (const auto& unit : units_)
        names.insert(names.end(), unit.begin(), unit.end());
    return names;
}

std::vector<std::string> HostPairs::partners(const std::string& host) const {
    for (std::vector<std::string> unit : units_) {
        const auto found = std::find(unit.begin(), unit.end(), host);
        if (found == unit.end()) continue;
        unit.erase(found);
        return unit;
    }
    return {};
}

bool HostPairs::partner_is(const std::string& host,
                           const std::function<bool(const std::string&)>& such) const {
    const std::vector<std::string> others = partners(host);
    return std::any_of(others.begin(), others.end(), such);
}

nlohmann::json HostPairs::several() const {
    nlohmann::json several;
    for (const auto& unit : units_)
        if (unit.size() > 1) several.push_back(unit);
    return several;
}

std::string joined_run(const std::string& run, const std::function<bool(const std::string&)>& has) {
    const std::size_t dash = run.rfind('-');
    if (dash == std::string::npos || dash + 1 == run.size()) return run;
    const bool number = std::all_of(run.begin() + static_cast<std::ptrdiff_t>(dash) + 1, run.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
    const std::string base = run.substr(0, dash);
    return number && has(base) ? base : run;
}

}  // namespace petacq::petctl
