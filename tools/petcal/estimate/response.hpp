// The response of a crystal, from ADC counts to energy, by two lines.
#pragma once

#include <span>

namespace petacq::petcal {

/// An energy E gives adc = scale E / (1 + bend E) ADC counts, and so adc / E = scale - bend adc: a detector
/// that saturates has a bend above 0. If light for x photons a cell falls on a SiPM, a share of 1 - exp(-x)
/// of the cells fires (the chance that Poisson counts are not 0). That is x / (1 + x / 2) but for x^2 / 12 of
/// it, so that this form follows such a SiPM between and near two lines.
struct Response {
    double scale = 0;  ///< ADC counts per keV of small energies
    double bend = 0;   ///< 1 / keV

    [[nodiscard]] double adc(double keV) const { return scale * keV / (1 + bend * keV); }  // NOLINT
};

/// One that gives these ADC counts at two energies, keV. All above 0, the energies differ.
Response response_of(double adc, double keV, double other_adc, double other_keV);  // NOLINT
/// One with a given bend that gives these ADC counts at an energy.
Response response_with(double bend, double adc, double keV);  // NOLINT

/// The ADC counts at which factors, one for each bin of config::adc_per_bin, give an energy. 0: none.
double adc_at(std::span<const float> factors, double keV);  // NOLINT
/// The factors of a response, in the middle of each bin. Where no energy is left, that of the bin before.
void fill_factors(const Response& response, std::span<float> factors);

}  // namespace petacq::petcal
