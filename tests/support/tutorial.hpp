// A tutorial, followed as it stands on its page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

namespace petacq::test {

/// A page of docs/tutorials: its name without ".md".
std::string tutorial_page(const std::string& name);

/// Runs the shell commands of a page in a directory, where `config` is that of the source tree, one by one up
/// to the first that fails, with the programs of the build and free ports.
Outcome follow_tutorial(const std::string& page, const std::filesystem::path& directory);

/// The lines in blocks of output (```text) of a page that are not among those that were printed. "..." stands
/// for lines that the page leaves out.
std::vector<std::string> not_printed(const std::string& page, const std::string& printed);

}  // namespace petacq::test
