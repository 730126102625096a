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
            modules_[m].unknown = true;
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
    for (std::uint32_t m = 0; m < modules_.size() && m < geometry.bdm_count; ++m)
        modules_[m].exists = geometry.module_exists(m);
    datagrams_unknown_ = datagrams_unknown_ || std::isnan(second.lost);
}

std::optional<double> LiveSums::of(std::size_t module) const {
    if (module >= modules_.size() || datagrams_unknown_ || !(weight_ > 0)) return std::nullopt;
    const Module& m = modules_[module];
    return m.told && !m.unknown ? std::optional(m.live / weight_) : std::nullopt;
}

std::optional<double> LiveSums::mean() const {
    if (modules_.empty()) return std::nullopt;
    double sum = 0;
    double count = 0;
    for (std::size_t module = 0; module < modules_.size(); ++module) {
        if (!modules_[module].exists) continue;
        const auto live = of(module);
        if (!live) return std::nullopt;
        sum += *live;
        ++count;
    }
    return sum / count;
}

}  // namespace petacq::daemon
