// The clocks of modules from sums over their prompts.
#pragma once

#include <span>
#include <vector>

namespace petacq::petcal {

struct ModuleTimes {
    std::vector<double> times;     ///< [module] later ones positive; their mean is 0
    std::vector<double> variance;  ///< [module] for a variance of 1 of each difference; infinite: no pairs
};

/// The times of modules that fit the time differences of all pairs best: least squares, whose normal
/// equations need no more than these sums. `pairs`: [a * modules + b], symmetric, how many. `differences`:
/// [module] sum over its pairs of the time of the other module less its own. A source that joins only
/// opposite modules leaves patterns uncertain that are the same at both sides; `variance` says so. Throws
/// std::invalid_argument if the sizes do not match.
ModuleTimes module_times(std::span<const double> pairs, std::span<const double> differences);

}  // namespace petacq::petcal
