// Which modules of a scanner have partners: crystals with which one of theirs is a good pair.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// Modules none of whose crystals is in a good pair, in the order of their numbers. None in the short form,
/// whose conditions leave partners to every module.
std::vector<std::uint32_t> modules_without_partner(const config::Scanner& scanner,
                                                   const CoincidenceRules& rules);

/// Throws config::Error if coincidences are looked for and the scanner has no good pair at all; with the key
/// at fault, the conditions and where its crystals are. The key is one of the scanner description if there is
/// none without the conditions of the rules, else one of the configuration.
void check_any_good_pair(const config::Scanner& scanner, const CoincidenceRules& rules);

}  // namespace petacq::gpu
