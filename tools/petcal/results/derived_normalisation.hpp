// A normalisation that was derived, and how its data and the fit were.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petcal/base/dead_units.hpp"
#include "tools/petcal/estimate/pairs/normalise.hpp"

namespace petacq::petcal {

struct DerivedNormalisation {
    estimate::NormalisationFit fit;
    normalisation::Normalisation normalisation;
    std::uint64_t prompts = 0;
    std::uint64_t used = 0;  ///< of these, on a line through the source
    double randoms = 0;      ///< expected among those used
    std::string randoms_from;
    double scattered = 0;  ///< in the source, expected among those used; 0 where it does not attenuate
    std::string loss;      ///< a sentence
    std::vector<std::string> unknown;  ///< what the file does not tell
    std::string geometric;             ///< of the long form: where its geometric factors come from
    DeadCrystals dead;
};

/// Relative standard error of the efficiency of a crystal, by its counts: the median of those alive; 0
/// without any.
double efficiency_error(const DerivedNormalisation& derived);
/// The figures, with messages about what they mean.
nlohmann::json figures_json(const DerivedNormalisation& derived);
/// The same as lines of text.
std::string figures_text(const config::Scanner& scanner, const DerivedNormalisation& derived);

}  // namespace petacq::petcal
