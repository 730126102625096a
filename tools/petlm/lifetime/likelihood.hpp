// How likely a lifetime spectrum is, by what is fitted.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "tools/petlm/lifetime/fit.hpp"
#include "tools/petlm/lifetime/spectrum.hpp"

namespace petacq::lifetime {

/// What is fitted.
enum Parameter : std::uint8_t { para, direct, ortho, chance, ortho_ns, sigma_ns, offset_ns, parameters };
using Values = Eigen::Matrix<double, parameters, 1>;
using Information = Eigen::Matrix<double, parameters, parameters>;

/// The likelihood of a spectrum with the best number of randoms in each bin. Thread-safe.
class Likelihood {
  public:
    /// Both must outlive it.
    Likelihood(const Spectrum& spectrum, const FitSettings& settings);

    struct Point {
        double value = 0;  ///< deviance; the likelihood is largest where it is smallest
        Values slope;      ///< of the logarithm of the likelihood
        Information information;
        std::vector<double> expected;
    };

    [[nodiscard]] Point at(const Values& values, bool with_slopes) const;
    /// [bin] the share of a component that is in it.
    [[nodiscard]] std::vector<double> shares(Component component, const Values& at) const;
    /// Delayed gammas.
    [[nodiscard]] double delayed() const { return delayed_; }

  private:
    [[nodiscard]] std::vector<double> slope_by(Parameter parameter, const Values& values) const;

    const Spectrum& s_;
    const FitSettings& settings_;
    double delayed_ = 0;
    double weight_ = 0;  ///< of an event of the randoms
};

}  // namespace petacq::lifetime
