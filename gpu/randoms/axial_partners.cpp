#include "gpu/randoms/axial_partners.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace petacq::gpu {

AxialPartners find_axial_partners(const PairCells& cells, const std::vector<double>& paired,
                                  const std::vector<double>& good) {
    constexpr int rounds = 30;
    const std::size_t zones = cells.zones;
    AxialPartners out{std::vector<double>(zones * zones, 1.0 / static_cast<double>(zones)),
                      std::vector<double>(zones * zones)};
    const std::vector<double>& near = cells.near_zones;
    std::vector<double> middle(2 * zones, 1.0);  // [a + b]
    std::vector<double> slope(zones, 1.0);       // [|a - b|]
    std::vector<double> wanted_good(zones);      // wanted / fitted
    std::vector<double> wanted_bad(zones);
    for (int round = 0; round < rounds; ++round) {
        const auto fitted = [&](std::size_t a, std::size_t b) {
            return middle[a + b] * slope[a > b ? a - b : b - a];
        };
        for (std::size_t a = 0; a < zones; ++a) {
            double fitted_good = 0;
            double fitted_bad = 0;
            for (std::size_t b = 0; b < zones; ++b) {
                fitted_good += fitted(a, b) * near[a * zones + b];
                fitted_bad += fitted(a, b) * (1 - near[a * zones + b]);
            }
            wanted_good[a] = fitted_good > 0 ? good[a] / fitted_good : 0;
            wanted_bad[a] = fitted_bad > 0 ? (paired[a] - good[a]) / fitted_bad : 0;
        }
        std::vector<double> middle_before(2 * zones);
        std::vector<double> middle_after(2 * zones);
        std::vector<double> slope_before(zones);
        std::vector<double> slope_after(zones);
        for (std::size_t a = 0; a < zones; ++a) {
            double all = 0;
            for (std::size_t b = 0; b < zones; ++b) {
                const double now = fitted(a, b);
                const double of_good = now * near[a * zones + b] * (wanted_good[a] + wanted_good[b]) / 2;
                const double of_bad = now * (1 - near[a * zones + b]) * (wanted_bad[a] + wanted_bad[b]) / 2;
                const double next = of_good + of_bad;
                const std::size_t apart = a > b ? a - b : b - a;
                middle_before[a + b] += now;
                middle_after[a + b] += next;
                slope_before[apart] += now;
                slope_after[apart] += next;
                out.partners[a * zones + b] = next;
                out.good[a * zones + b] = next > 0 ? of_good / next : near[a * zones + b];
                all += next;
            }
            for (std::size_t b = 0; b < zones; ++b)
                out.partners[a * zones + b] =
                    all > 0 ? out.partners[a * zones + b] / all : 1.0 / static_cast<double>(zones);
        }
        for (std::size_t i = 0; i < middle.size(); ++i)
            middle[i] *= middle_before[i] > 0 ? std::sqrt(middle_after[i] / middle_before[i]) : 0;
        for (std::size_t i = 0; i < zones; ++i)
            slope[i] *= slope_before[i] > 0 ? std::sqrt(slope_after[i] / slope_before[i]) : 0;
    }
    return out;
}

}  // namespace petacq::gpu
