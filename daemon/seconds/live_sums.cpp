#include "daemon/seconds/live_sums.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/interval_sums.hpp"

namespace petacq::daemon {

void LiveSums::add(double weight, std::span<const double> live, const HasSingles& has_singles) {
    modules_.resize(std::max(modules_.size(), live.size()));
    weight_ += weight;
    for (std::size_t m = 0; m < live.size(); ++m) {
        if (!std::isnan(live[m])) {
            modules_[m].live += weight * live[m];
            modules_[m].told = true;
        } else if (has_singles(m)) {
            unknown_ = true;
        }
    }
}

void LiveSums::add(const Second& second, const config::Geometry& geometry) {
    std::vector<bool> counted;
    add(static_cast<double>(second.range.ticks()), second.live, [&](std::size_t module) {
        if (counted.empty()) {
            counted.resize(geometry.bdm_count);
            const auto modules = gpu::modules_of_crystals(geometry);
            for (std::size_t crystal = 0; crystal < modules.size(); ++crystal) {
                if (second.sums.unpaired[crystal] != 0 || second.sums.grouped[crystal] != 0)
                    counted[modules[crystal]] = true;
            }
        }
        return counted[module];
    });
    // Datagrams may be missing that no number shows.
    unknown_ = unknown_ || std::isnan(second.lost);
}

std::optional<double> LiveSums::mean() const {
    if (unknown_ || !(weight_ > 0) || modules_.empty()) return std::nullopt;
    double live = 0;
    for (const Module& module : modules_) {
        if (!module.told) return std::nullopt;
        live += module.live;
    }
    return live / weight_ / static_cast<double>(modules_.size());
}

}  // namespace petacq::daemon
