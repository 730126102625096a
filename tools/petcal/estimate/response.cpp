#include "tools/petcal/estimate/response.hpp"

#include "config/energy_bins.hpp"

namespace petacq::petcal {

namespace {

double middle_of(std::size_t bin) {
    return (static_cast<double>(bin) + 0.5) * config::adc_per_bin - 0.5;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
Response response_with(double bend, double adc, double keV) {
    return {adc / keV * (1 + bend * keV), bend};
}

Response response_of(double adc, double keV, double other_adc, double other_keV) {
    // From adc / E = scale - bend adc of both.
    return response_with((adc / keV - other_adc / other_keV) / (other_adc - adc), adc, keV);
}

double adc_at(std::span<const float> factors, double keV) {
    double adc = 0;
    double energy = 0;
    for (std::size_t bin = 0; bin < factors.size(); ++bin) {
        const double next_adc = middle_of(bin);
        const double next = next_adc * double{factors[bin]};
        if (next >= keV) return adc + (keV - energy) / (next - energy) * (next_adc - adc);
        adc = next_adc;
        energy = next;
    }
    return factors.back() > 0 ? keV / double{factors.back()} : 0;
}
// NOLINTEND(readability-identifier-naming)

void fill_factors(const Response& response, std::span<float> factors) {
    double factor = 1 / response.scale;
    for (std::size_t bin = 0; bin < factors.size(); ++bin) {
        const double rest = response.scale - response.bend * middle_of(bin);
        if (rest > 0) factor = 1 / rest;
        factors[bin] = static_cast<float>(factor);
    }
}

}  // namespace petacq::petcal
