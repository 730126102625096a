// Which modules of a scanner have partners: other modules with which one of their crystals makes a good pair.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/coincidence_rules.hpp"

namespace petacq::gpu {

/// Modules none of whose crystals makes a good pair with one of another module, in the order of their
/// numbers. Pairs within a module do not count: their lines miss what is between the modules. None in the
/// short form, whose conditions leave partners to every module.
std::vector<std::uint32_t> modules_without_partner(const config::Scanner& scanner,
                                                   const CoincidenceRules& rules);

/// Throws config::Error if coincidences are looked for and the scanner has no good pair at all; with the key
/// at fault, the conditions and where its crystals are. The key is one of the scanner description if there is
/// none without the conditions of the rules, else one of the configuration.
void check_any_good_pair(const config::Scanner& scanner, const CoincidenceRules& rules);

}  // namespace petacq::gpu
