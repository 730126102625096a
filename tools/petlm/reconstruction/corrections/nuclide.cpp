#include "tools/petlm/reconstruction/corrections/nuclide.hpp"

#include <algorithm>
#include <stdexcept>

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::corrections {

std::optional<daemon::StatedActivity> nuclide_of(const daemon::Coverage& coverage,
                                                 const NuclideOptions& options) {
    if (!options.nuclide) {
        if (options.half_life_s || options.branching_ratio)
            throw petlm::UsageError("--half-life-s, --branching-ratio: expected --nuclide, which has them");
        return coverage.activity;
    }
    try {
        const config::Nuclide named =
            config::declared_nuclide(*options.nuclide, options.half_life_s, options.branching_ratio);
        return daemon::StatedActivity{named.name, named.half_life_s, named.branching_ratio, {}, {}};
    } catch (const std::invalid_argument& error) {
        // Parameters are named as members of a JSON object are: half_life_s.
        std::string text = error.what();
        std::replace(text.begin(), std::find(text.begin(), text.end(), ':'), '_', '-');
        throw petlm::UsageError("--" + text);
    }
}

double decay_correction(const daemon::Coverage& coverage,
                        const std::optional<daemon::StatedActivity>& nuclide) {
    return nuclide ? coverage.decay_factor(nuclide->half_life_s) / nuclide->branching_ratio : 1;
}

}  // namespace petacq::corrections
