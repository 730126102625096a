#include "daemon/preflight/partners.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "config/scanner/arrangement.hpp"
#include "gpu/rules/partners.hpp"

namespace petacq::daemon {

Findings check_partners(const config::Scanner& scanner, const gpu::CoincidenceRules& rules) {
    constexpr std::size_t most_named = 8;
    if (!rules.search) return {};
    const std::vector<std::uint32_t> alone = gpu::modules_without_partner(scanner, rules);
    if (alone.empty()) return {};
    std::string numbers;
    for (std::size_t i = 0; i < std::min(alone.size(), most_named); ++i)
        numbers += (i == 0 ? "" : ", ") + std::to_string(alone[i]);
    if (alone.size() > most_named) numbers += ", ...";
    return {{Level::warning, "good pairs",
             fmt::format("{} of {} modules of scanner \"{}\" can have no coincidence with any other: {}",
                         alone.size(), scanner.arrangement->modules().size(), scanner.name, numbers),
             "look at good_pairs of the scanner description and at coincidence.min_module_difference and "
             "max_ring_difference; petcal draw shows the modules"}};
}

}  // namespace petacq::daemon
