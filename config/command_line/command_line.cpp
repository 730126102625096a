#include "config/command_line/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>

#include "config/base/exit_status.hpp"
#include "config/command_line/completion.hpp"
#include "config/nuclides/nuclides.hpp"
#include "config/spelling/nearest_word.hpp"

namespace petacq::config {

namespace {

constexpr const char* help_command = "help";
constexpr const char* complete_command = "__complete";
constexpr std::size_t longest_shown = 40;

std::vector<CLI::App*> commands_of(CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app))
        names.push_back(command->get_name());
    return names;
}

std::string meant(const std::string& word, const std::vector<std::string>& known) {
    const std::string nearest = nearest_word(word, known);
    return nearest.empty() ? "" : word + ": did you mean " + nearest + "?\n";
}

void add_options_of(const CLI::App& app, std::vector<std::string>& names) {
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    }
}

/// For the words that were not expected, after a failed parse.
std::string suggestions(CLI::App& app) {
    std::vector<std::string> options;
    CLI::App* command = &app;
    add_options_of(*command, options);
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().front();
        add_options_of(*command, options);
    }
    std::string text;
    for (const std::string& word : app.remaining(true)) {
        const std::string name = word.substr(0, word.find('='));
        text += meant(name, word.starts_with("-") ? options : command_names(*command));
    }
    return text;
}

bool starts_as(const CLI::Option& option, const char* type) {
    return option.get_type_name().starts_with(type);
}

bool is_one_of(const CLI::Option& option, const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return option.check_name(name); });
}

enum class Sign : std::uint8_t { any, not_negative, positive };

/// "" for a finite number with that sign.
std::string refusal(const std::string& text, Sign sign) {
    constexpr std::array expected{"", " of at least 0", " above 0"};
    double value = 0;
    const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                      (sign == Sign::any || !std::signbit(value)) && (sign != Sign::positive || value > 0);
    if (good) return "";
    return std::string("expected a finite number") + expected.at(static_cast<std::size_t>(sign)) +
           ", found " + (text.size() <= longest_shown ? text : text.substr(0, longest_shown) + "...");
}

/// "" unless it is a whole number that no variable holds: CLI11 takes it for the largest one.
std::string too_large(const std::string& text) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), end, value).ec != std::errc::result_out_of_range) return "";
    return "expected a number below 2^64, found " +
           (text.size() <= longest_shown ? text : text.substr(0, longest_shown) + "...");
}

void check_numbers(CLI::App& app, const CommandLineStyle& style) {
    for (CLI::Option* option : app.get_options()) {
        if (!starts_as(*option, "FLOAT") && !starts_as(*option, "UINT")) continue;
        Sign sign = Sign::not_negative;
        if (is_one_of(*option, style.may_be_negative)) sign = Sign::any;
        if (is_one_of(*option, style.above_zero)) sign = Sign::positive;
        option->check([sign](const std::string& text) { return refusal(text, sign); });
    }
    for (CLI::Option* option : app.get_options())
        if (starts_as(*option, "UINT")) option->check(too_large);
    for (CLI::App* command : commands_of(app))
        check_numbers(*command, style);
}

/// For `PROGRAM help WORDS`. Throws CLI::ParseError for a word that is no command.
void check_commands(CLI::App& app, const std::vector<std::string>& words) {
    CLI::App* here = &app;
    for (const std::string& word : words) {
        const auto commands = commands_of(*here);
        const auto next = std::find_if(commands.begin(), commands.end(),
                                       [&](const CLI::App* command) { return command->get_name() == word; });
        if (next == commands.end()) {
            const std::string hint = meant(word, command_names(*here));
            throw CLI::ParseError("help: there is no command " + word + (hint.empty() ? "" : "\n" + hint),
                                  exit_status::usage);
        }
        here = *next;
    }
}

/// Each line after the name of the program.
std::string named(const std::string& program, const std::string& text) {
    std::string lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines += program + ": " + text.substr(begin, end - begin) + '\n';
        begin = end + 1;
    }
    return lines;
}

}  // namespace

std::string nuclide_type() {
    std::string words;
    for (const Nuclide& nuclide : nuclides())
        words += (words.empty() ? "" : ",") + nuclide.name;
    return "TEXT:{" + words + "}";
}

std::optional<int> parse_command_line(CLI::App& app, const CommandLineStyle& style, int argc, char** argv) {
    app.set_version_flag("--version", style.program + " " + PETACQ_VERSION);
    check_numbers(app, style);
    if (!commands_of(app).empty()) app.add_subcommand(help_command, "Show the options of a command");
    app.failure_message([&app, &style](const CLI::App* /*failed*/, const CLI::Error& error) {
        return named(style.program, std::string(error.what()) + "\n" + suggestions(app)) +
               "Run with --help for more information.\n";
    });

    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words.front() == complete_command) {
        words.erase(words.begin());
        for (const std::string& line : completions(app, style, words))
            std::puts(line.c_str());
        return 0;
    }
    try {
        if (!words.empty() && words.front() == help_command) {
            words.erase(words.begin());
            check_commands(app, words);
            words.emplace_back("--help");
        }
        app.name(argc > 0 ? argv[0] : style.program);
        std::reverse(words.begin(), words.end());  // as CLI11 wants them
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : exit_status::usage;
    }
    return std::nullopt;
}

}  // namespace petacq::config
