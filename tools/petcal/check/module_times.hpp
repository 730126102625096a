// The clocks of modules from sums over their prompts.
#pragma once

#include <span>
#include <vector>

namespace petacq::petcal {

/// The times of modules that fit the time differences of all pairs best: least squares, whose normal
/// equations need no more than these sums. `pairs`: [a * modules + b], symmetric, how many. `differences`:
/// [module] sum over its pairs of the time of the other module less its own. The mean is 0 over modules that
/// pairs join; a module without pairs has 0.
std::vector<double> module_times(std::span<const double> pairs, std::span<const double> differences);

}  // namespace petacq::petcal
