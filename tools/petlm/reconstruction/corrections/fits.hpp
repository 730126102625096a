// Whether a normalisation fits the records that it is to correct.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "daemon/coverage/coverage.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"

namespace petacq::corrections {

/// What the records of a scan say about the normalisation that is made of them: attributes of its file.
std::map<std::string, std::string> facts_for_normalisation(const daemon::Coverage& coverage,
                                                           const config::Scanner& scanner,
                                                           const config::DepthOfInteraction& depth);

/// The --depth-mm with which a normalisation was made; absent if it was made without, and without a
/// normalisation.
std::optional<double> depth_of_normalisation(const LineOptions& options, const config::Scanner& scanner);

/// Throws petlm::BadInput, with the reason, if the normalisation was made for another energy window,
/// calibration, scanner or depth of interaction. Returns sentences about what is not known or may be wrong.
std::vector<std::string> check_fit(const LineFactors& lines, const std::filesystem::path& file,
                                   const daemon::Coverage& coverage, const config::Scanner& scanner);

}  // namespace petacq::corrections
