#include "daemon/preflight/gaps.hpp"

#include <fmt/core.h>

#include <cstdint>

#include "config/scanner/existing_modules.hpp"

namespace petacq::daemon {

Findings check_gaps(const config::Scanner& scanner, const config::Calibration& calibration) {
    constexpr std::uint64_t much = std::uint64_t{16} << 20;  // bytes
    const config::Geometry& g = scanner.geometry;
    const std::uint64_t exist = config::existing_modules(g).size();
    const std::uint64_t of_each = (calibration.energy_factor.size() * sizeof(float) +
                                   calibration.position_table.size() * sizeof(std::uint16_t)) /
                                  g.bdm_count;
    const std::uint64_t empty = (g.bdm_count - exist) * of_each;
    if (empty < much) return {};
    return {{Level::warning, "channel map",
             fmt::format("tables have room for {} BDMs, as the highest number is {}; {} exist. {} MiB of the "
                         "calibration are empty, and start and memory of all programs take their share",
                         g.bdm_count, g.bdm_count - 1, exist, empty >> 20),
             "number the BDMs without large gaps, if the boards allow it"}};
}

}  // namespace petacq::daemon
