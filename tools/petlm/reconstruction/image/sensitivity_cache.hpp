// Sensitivities are kept in files: they depend on the scanner, the grid, the normalisation and what
// attenuates, and are the same for all runs that have these in common.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::image {

/// petacqd in $XDG_CACHE_HOME, or in .cache of the home directory; empty if there is neither.
std::filesystem::path cache_of_user();

/// SHA-256 of all that a sensitivity depends on, the program included: another one may compute otherwise.
/// `digest`: of the chance of each line (QuickLookModel).
std::string sensitivity_key(const config::Scanner& scanner, const gpu::PairRule& rule,
                            const corrections::LineFactors& factors, const Grid& grid,
                            const std::string& digest);

/// The sensitivity of that key in the directory; otherwise `compute` makes it, and it is kept there. A file
/// with another key, length or checksum is replaced. Files that were not used for the longest time are
/// removed when all of them take more than 2 GB. `from` becomes a phrase that says where it came from.
/// Failures of the cache are told there, never thrown.
std::vector<float> cached_sensitivity(const std::filesystem::path& directory, const std::string& key,
                                      std::size_t voxels, const std::function<std::vector<float>()>& compute,
                                      std::string& from);

}  // namespace petacq::image
