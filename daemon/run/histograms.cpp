#include "daemon/run/histograms.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/energy_bins.hpp"

namespace petacq::daemon {

nlohmann::json to_json(const gpu::SinglesHistograms& h, const config::Geometry& g) {
    nlohmann::json document = {{"crystals", h.per_crystal},
                               {"energy_bin_keV", h.energy_bin_keV},
                               {"energy", nlohmann::json::array()},
                               {"temperature_C", nlohmann::json::array()}};
    constexpr std::uint32_t bins = config::energy_bins;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        const auto first = h.energy.begin() + bdm * std::ptrdiff_t{bins};
        document["energy"].push_back(std::vector<std::uint64_t>(first, first + bins));
        nlohmann::json units = nlohmann::json::array();
        for (std::size_t unit = std::size_t{bdm} * g.du_count; unit < (bdm + std::size_t{1}) * g.du_count;
             ++unit) {
            const std::uint64_t count = h.temperature_count[unit];
            const auto sum = static_cast<double>(h.temperature_sum_16ths[unit]);
            units.push_back(count > 0 ? nlohmann::json(sum / 16 / static_cast<double>(count))
                                      : nlohmann::json());
        }
        document["temperature_C"].push_back(std::move(units));
    }
    return document;
}

}  // namespace petacq::daemon
