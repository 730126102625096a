// What the README.txt that petlm export puts beside its files states of those whose format does not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/import/foreign_file.hpp"

namespace petacq::petlm {

/// A sentence for the user: the times of the file are taken as ticks of the scanner. None if the README.txt
/// says so, too. Throws BadInput if it says otherwise.
std::optional<std::string> remark_of_ticks(const ForeignInput& input);
/// Of energies and time differences, those that its records do not tell, as phrases of the coverage; none
/// without a README.txt.
std::vector<std::string> unknown_by_readme(const std::filesystem::path& file);

}  // namespace petacq::petlm
