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

}  // namespace petacq::petctl
