#include "tools/petsim/physics/attenuation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::sim {

namespace {

constexpr double reference_keV = 511;  // NOLINT(readability-identifier-naming)
constexpr double photo_power = -2.6;
constexpr std::size_t highest_keV = 3000;  // NOLINT(readability-identifier-naming)

}  // namespace

Attenuation::Attenuation(double per_cm, double photo_share) {
    const double per_mm = per_cm / 10;
    const double reference = klein_nishina_total(reference_keV);
    for (std::size_t i = 0; i <= highest_keV; ++i) {
        const double energy = std::max(static_cast<double>(i), 1.0);
        const double compton = (1 - photo_share) * klein_nishina_total(energy) / reference;
        const double photo =
            photo_share > 0 ? photo_share * std::pow(energy / reference_keV, photo_power) : 0.0;
        total_.push_back(per_mm * (compton + photo));
        photo_.push_back(photo > 0 ? photo / (compton + photo) : 0.0);
    }
}

double Attenuation::at(const std::vector<double>& table, double energy) {
    const double place = std::clamp(energy, 0.0, static_cast<double>(highest_keV) - 0.5);
    const auto i = static_cast<std::size_t>(place);
    return table[i] + (place - static_cast<double>(i)) * (table[i + 1] - table[i]);
}

}  // namespace petacq::sim
