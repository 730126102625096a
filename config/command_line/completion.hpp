// What may stand at a place of a command line, for completion in shells. CLI11 takes long to compile: only
// command_line.cpp includes this.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/command_line/command_line.hpp"

namespace petacq::config {

namespace completion {

inline constexpr const char* any_file = ":files";

/// The words in a type like "TEXT:{a,b,c}" or "{a->1,b->2}".
inline std::vector<std::string> words_of(const std::string& type) {
    std::vector<std::string> words;
    const auto begin = type.find('{');
    const auto end = type.find('}', begin);
    if (begin == std::string::npos || end == std::string::npos) return words;
    for (const std::string& word : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
        words.push_back(word.substr(0, word.find("->")));
    return words;
}

inline std::string name_of(const CLI::Option& option) {
    if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
    return option.get_snames().empty() ? option.get_name(true) : "-" + option.get_snames().front();
}

inline std::string line(const std::string& word, const std::string& description) {
    return description.empty() ? word : word + "\t" + description;
}

/// A command line up to the word that is completed.
class WordsSoFar {
  public:
    WordsSoFar(CLI::App& app, const CommandLineStyle& style) : style_(style), here_(&app), visible_{&app} {}

    void pass(const std::string& word) {
        const bool first = passed_.empty();
        passed_.push_back(word);
        if (awaits_ != nullptr) {
            awaits_ = nullptr;
        } else if (word.size() > 1 && word.front() == '-') {
            const CLI::Option* option = word.find('=') == std::string::npos ? find(word) : nullptr;
            if (option != nullptr && option->get_type_size() != 0) awaits_ = option;
        } else if (first && word == "help") {
            // "petlm help cut" is "petlm cut --help"
        } else if (CLI::App* command = command_named(word); command != nullptr) {
            enter(*command);
        }
    }

    [[nodiscard]] std::vector<std::string> offered(const std::string& last) const {
        if (awaits_ != nullptr) return values(*awaits_);
        if (const auto equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
            const CLI::Option* const option = find(last.substr(0, equals));
            std::vector<std::string> lines;
            if (option == nullptr || option->get_type_size() == 0) return lines;
            for (const std::string& value : values(*option))
                lines.push_back(value == any_file ? value : last.substr(0, equals + 1) + value);
            return lines;
        }
        if (last.starts_with("-")) return options();
        if (!commands().empty()) return commands();
        for (const CLI::Option* option : here_->get_options())
            if (option->get_positional()) return values(*option);
        return {};
    }

  private:
    /// nullptr if there is none.
    [[nodiscard]] CLI::App* command_named(const std::string& word) const {
        const auto found =
            here_->get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
        return found.empty() ? nullptr : found.front();
    }

    void enter(CLI::App& command) {
        // Options of a program may follow the command only if the program says so.
        if (!here_->get_fallthrough()) visible_.clear();
        here_ = &command;
        visible_.push_back(here_);
    }

    [[nodiscard]] const CLI::Option* find(const std::string& name) const {
        for (const CLI::App* app : visible_)
            if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
        return nullptr;
    }

    [[nodiscard]] std::vector<std::string> options() const {
        std::vector<std::string> lines;
        for (const CLI::App* app : visible_) {
            for (const CLI::Option* option : app->get_options()) {
                for (const std::string& name : option->get_lnames())
                    lines.push_back(line("--" + name, option->get_description()));
                for (const std::string& name : option->get_snames())
                    lines.push_back(line("-" + name, option->get_description()));
            }
        }
        return lines;
    }

    [[nodiscard]] std::vector<std::string> commands() const {
        std::vector<std::string> lines;
        for (const CLI::App* command : here_->get_subcommands([](const CLI::App*) { return true; }))
            lines.push_back(line(command->get_name(), command->get_description()));
        return lines;
    }

    [[nodiscard]] std::vector<std::string> values(const CLI::Option& option) const {
        if (style_.values) {
            if (auto known = style_.values({here_->get_name(), name_of(option), passed_})) return *known;
        }
        const std::string type = option.get_type_name();
        if (auto words = words_of(type); !words.empty()) return words;
        if (type.starts_with("TEXT")) return {any_file};
        return {};
    }

    const CommandLineStyle& style_;
    CLI::App* here_;
    std::vector<const CLI::App*> visible_;  ///< whose options may be used
    std::vector<std::string> passed_;
    const CLI::Option* awaits_ = nullptr;  ///< the next word is its value
};

}  // namespace completion

/// The lines that `PROGRAM __complete WORD... LAST` prints: what LAST, which may be unfinished, can become
/// after the words. Each is a word and, after a tab, its description if it has one; the line ":files" stands
/// for the names of files. LAST may be "--option=value"; the lines then are so, too.
inline std::vector<std::string> completions(CLI::App& app, const CommandLineStyle& style,
                                            const std::vector<std::string>& words) {
    completion::WordsSoFar so_far(app, style);
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        so_far.pass(words[i]);
    std::vector<std::string> lines = so_far.offered(words.empty() ? "" : words.back());
    for (std::string& text : lines)
        for (char& c : text)
            if (c == '\n' || c == '\r') c = ' ';
    // --help belongs to a program and to each command.
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    return lines;
}

}  // namespace petacq::config
