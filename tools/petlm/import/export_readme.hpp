// The length of the ticks in files that do not state it.
#pragma once

#include <optional>
#include <string>

#include "tools/petlm/import/foreign_file.hpp"

namespace petacq::petlm {

/// A sentence for the user: the times of the file are taken as ticks of the scanner. None if the README.txt
/// that petlm export puts beside its files says so, too. Throws BadInput if it says otherwise.
std::optional<std::string> remark_of_ticks(const ForeignInput& input);

}  // namespace petacq::petlm
