// A lifetime spectrum: how long after the gamma the pair of a triple came, as a histogram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace petacq::lifetime {

struct Spectrum {
    double first_ns = 0;  ///< lower edge of the first bin
    double bin_ns = 0;
    /// [bin] Triples of prompts and coincident gammas.
    std::vector<double> coincident;
    /// [bin] Triples of prompts and delayed gammas: those of `coincident` whose gamma came by chance, which
    /// are as frequent at any time. Empty: none were looked for.
    std::vector<double> delayed;
    /// [bin] Triples of delayeds, each with its weight: how many random prompts with a gamma of one of their
    /// two decays are expected. And the sum of the squares of the weights.
    std::vector<double> randoms;
    std::vector<double> randoms_squares;
    /// The mean over the bins of what delayeds and delayed gammas have in `randoms`, where only chance puts
    /// it.
    double randoms_by_chance = 0;

    [[nodiscard]] std::size_t bins() const { return coincident.size(); }
    [[nodiscard]] double middle_ns(std::size_t bin) const {
        return first_ns + (static_cast<double>(bin) + 0.5) * bin_ns;
    }
};

}  // namespace petacq::lifetime
