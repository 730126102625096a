#include "tools/petcal/results/energy_factors.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "config/base/constants.hpp"
#include "config/energy_bins.hpp"
#include "config/median.hpp"
#include "config/spectra.hpp"
#include "tools/petcal/estimate/response.hpp"

namespace petacq::petcal {

namespace {

double energy_at(double place) {
    return config::energy_bin_keV * place;
}

bool both_fitted(const UnitLines& unit, std::size_t local) {
    return unit.first.crystals[local].state == PeakState::fitted &&
           unit.second.crystals[local].state == PeakState::fitted;
}

/// Absent where factors follow from the first line alone: of a unit that keeps its own, of unused crystals.
using Responses = std::vector<std::optional<Response>>;

/// [unit][local crystal]
Responses responses_of(const config::Geometry& g, const config::Calibration& old,
                       const std::vector<UnitLines>& units,
                       double second_keV) {  // NOLINT(readability-identifier-naming)
    Responses out;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        const UnitLines& lines = units[unit];
        const auto adc = [&](std::size_t local, double place) {
            return adc_at(factors_of(g, old, unit, local), energy_at(place));
        };
        std::vector<double> bends;
        for (std::size_t local = 0; local < g.crystals_per_du(); ++local) {
            out.emplace_back();
            if (local >= lines.first.crystals.size() || !lines.refused().empty() ||
                !both_fitted(lines, local))
                continue;
            const double adc_first = adc(local, lines.first.crystals[local].peak.place);
            const double adc_second = adc(local, lines.second.crystals[local].peak.place);
            if (!(adc_first > 0) || (adc_second > adc_first) != (second_keV > first_line_keV)) continue;
            out.back() = response_of(adc_first, first_line_keV, adc_second, second_keV);
            bends.push_back(out.back()->bend);
        }
        if (!lines.refused().empty()) continue;
        const double usual = config::median(std::move(bends));
        for (std::size_t local = 0; local < lines.first.crystals.size(); ++local) {
            auto& response = out[unit * g.crystals_per_du() + local];
            if (response) continue;
            const CrystalPeak& c = lines.first.crystals[local];
            const double place = c.state == PeakState::fitted ? c.peak.place : lines.first.median_place;
            const double counts = adc(local, place);
            if (counts > 0) response = response_with(usual, counts, first_line_keV);
        }
    }
    return out;
}

/// So many that each crystal has a factor of its own up to the end of the spectra.
std::uint32_t bins_for(const Responses& responses, std::uint32_t least) {
    constexpr double last = config::energy_bins * config::energy_bin_keV;
    double most = 0;
    for (const auto& response : responses)
        if (response && 1 + response->bend * last > 0) most = std::max(most, response->adc(last));
    const double bins = std::ceil(most / config::adc_per_bin) + 1;
    return std::clamp(static_cast<std::uint32_t>(std::min<double>(bins, config::max_bins)), least,
                      config::max_bins);
}

/// Puts the factors of the responses into a result that has the old ones.
void follow_responses(const Responses& responses, EnergyResult& r) {
    const std::uint32_t bins = bins_for(responses, r.bins);
    std::vector<float> factors(responses.size() * bins);
    for (std::size_t i = 0; i < responses.size(); ++i) {
        const auto to = std::span(factors).subspan(i * bins, bins);
        if (responses[i]) {
            fill_factors(*responses[i], to);
        } else {
            const auto from = std::span<const float>(r.energy_factor).subspan(i * r.bins, r.bins);
            std::fill(std::copy(from.begin(), from.end(), to.begin()), to.end(), from.back());
        }
    }
    r.energy_factor = std::move(factors);
    r.bins = bins;
}

}  // namespace

std::span<const float> factors_of(const config::Geometry& g, const config::Calibration& c, std::size_t unit,
                                  std::size_t local) {
    return std::span(c.energy_factor).subspan((unit * g.crystals_per_du() + local) * c.bins, c.bins);
}

// NOLINTBEGIN(readability-identifier-naming)
std::optional<Nonlinearity> nonlinearity_of(std::span<const float> factors, const UnitLines& unit,
                                            std::size_t local, double second_keV) {
    if (!both_fitted(unit, local)) return std::nullopt;
    const Photopeak& first = unit.first.crystals[local].peak;
    const Photopeak& second = unit.second.crystals[local].peak;
    const double ratio = adc_at(factors, energy_at(second.place)) / second_keV /
                         (adc_at(factors, energy_at(first.place)) / first_line_keV);
    return Nonlinearity{ratio - 1,
                        ratio * std::hypot(first.error / first.place, second.error / second.place)};
}

EnergyResult energy_result(const config::Geometry& g, const config::Calibration& old,
                           const std::vector<UnitLines>& units, double second_keV) {
    EnergyResult r;
    r.energy_factor = old.energy_factor;
    r.bins = old.bins;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        const UnitEnergies& lines = units[unit].first;
        for (std::size_t local = 0; local < g.crystals_per_du(); ++local) {
            if (local >= lines.crystals.size()) {  // the unit has fewer
                r.state.push_back(static_cast<std::uint8_t>(EnergyState::kept));
                r.peak_keV.push_back(0);
                r.resolution.push_back(0);
                continue;
            }
            const CrystalPeak& c = lines.crystals[local];
            const bool fitted = c.state == PeakState::fitted;
            const bool kept = !units[unit].refused().empty();
            EnergyState state = fitted ? EnergyState::fitted : EnergyState::unit_median;
            if (kept) state = EnergyState::kept;
            const double keV = energy_at(fitted ? c.peak.place : lines.median_place);
            r.state.push_back(static_cast<std::uint8_t>(state));
            r.peak_keV.push_back(fitted ? static_cast<float>(keV) : 0);
            r.resolution.push_back(
                fitted ? static_cast<float>(config::fwhm_per_sigma * c.peak.sigma / c.peak.place) : 0);
            if (kept) continue;
            const std::size_t at = (unit * g.crystals_per_du() + local) * old.bins;
            for (std::size_t bin = at; bin < at + old.bins; ++bin)
                r.energy_factor[bin] = static_cast<float>(old.energy_factor[bin] * (first_line_keV / keV));
        }
    }
    if (second_keV > 0) follow_responses(responses_of(g, old, units, second_keV), r);
    return r;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace petacq::petcal
