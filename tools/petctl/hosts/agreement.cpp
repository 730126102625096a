#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

struct Subject {
    const char* name;
    std::initializer_list<const char*> path;  ///< in the status document
};

const std::array subjects{Subject{"versions", {"version"}},
                          Subject{"scanners", {"scanner"}},
                          Subject{"ticks (ps)", {"common", "tick_ps"}},
                          Subject{"scanner descriptions (SHA-256)", {"common", "scanner_sha256"}},
                          Subject{"calibrations (SHA-256)", {"calibration", "sha256"}},
                          Subject{"clocks", {"common", "clock"}},
                          Subject{"lower energies (keV)", {"common", "lower_keV"}},
                          Subject{"upper energies (keV)", {"common", "upper_keV"}},
                          Subject{"lower energies of gammas (keV)", {"common", "gammas_lower_keV"}},
                          Subject{"upper energies of gammas (keV)", {"common", "gammas_upper_keV"}},
                          Subject{"settings of listmode.write_singles", {"common", "writes_singles"}}};

std::string shown(const json& value) {
    if (value.is_null() || value == "") return "none";
    std::string text = text_of(value);
    constexpr std::size_t longest = 40;  // two digests are told apart by their beginning
    return text.size() > longest ? text.substr(0, 12) : text;
}

}  // namespace

std::vector<std::string> disagreements(const std::vector<HostAnswer>& statuses, bool versions) {
    std::vector<std::string> found;
    for (const Subject& subject : subjects) {
        if (!versions && subject.name == std::string_view("versions")) continue;
        std::map<std::string, std::string> hosts;  // by value
        for (const HostAnswer& status : statuses) {
            if (!status.good()) continue;
            std::string& names =
                hosts[at(status.result(), subject.path).dump(-1, ' ', false, json::error_handler_t::replace)];
            names += (names.empty() ? "" : ", ") + status.host;
        }
        if (hosts.size() < 2) continue;
        std::string line = std::string("the hosts have different ") + subject.name + ":";
        for (const auto& [value, names] : hosts)
            line += " " + shown(json::parse(value)) + " (" + names + ")";
        found.push_back(line);
    }
    return found;
}

}  // namespace petacq::petctl
