// The commands of a tutorial, as they stand on its page.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/program.hpp"

namespace petacq::test {

/// Runs the blocks of shell commands of the page one by one, up to the first command that fails, with the
/// programs of the build, free ports and the configuration examples of the tree, in the directory.
Outcome follow_tutorial(const std::string& page, const std::filesystem::path& directory);

}  // namespace petacq::test
