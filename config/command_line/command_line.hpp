// Parses the command line of each program: --version, help, suggestions for misspelt words, the refusal of
// numbers that make no sense, and what completion in shells asks for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace petacq::config {

/// Whose value is to be completed.
struct ValueAsked {
    std::string command;             ///< the name of the program without one
    std::string option;              ///< "--run", or the name of a positional
    std::vector<std::string> words;  ///< before it on the command line
};

struct CommandLineStyle {
    std::string program;
    /// Options with numbers above 0. All others are at least 0, but for signed whole numbers and those below.
    std::vector<std::string> above_zero;
    std::vector<std::string> may_be_negative;  ///< options with fractions
    /// For completion: the values that only the program knows, such as runs. Nothing: the type tells.
    std::function<std::optional<std::vector<std::string>>(const ValueAsked&)> values = {};
};

/// For the option of a nuclide: a type whose words completion offers. The command checks them itself.
std::string nuclide_type();

/// Call it when all options are there. Adds --version and, to a program with commands, the command help;
/// `PROGRAM help COMMAND` means `PROGRAM COMMAND --help`. Numbers must be finite. Each message about a wrong
/// command line begins with the name of the program. `PROGRAM __complete WORD...` is for completion.hpp. The
/// callbacks of commands run here; what they throw passes through, but for CLI::ParseError. Returns an exit
/// status if the program is done: help or version was shown, or the command line is wrong.
std::optional<int> parse_command_line(CLI::App& app, const CommandLineStyle& style, int argc, char** argv);

}  // namespace petacq::config
