#include "tools/petlm/import/export_readme.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

std::filesystem::path readme_of(const std::filesystem::path& file) {
    return file.string() + ".README.txt";
}

/// The lines of the README.txt that petlm export has put beside the file; empty: there is none.
std::vector<std::string> lines_of_readme(const std::filesystem::path& file) {
    const std::filesystem::path readme = readme_of(file);
    if (!std::filesystem::is_regular_file(readme)) return {};
    LineReader lines(readme);
    if (!lines.next() || !lines.line().starts_with("Made by petlm export")) return {};
    std::vector<std::string> found;
    while (lines.next())
        found.push_back(lines.line());
    return found;
}

std::optional<double> tick_in_readme(const std::filesystem::path& file) {
    constexpr std::string_view key = "tick_ps: ";
    for (const std::string& line : lines_of_readme(file))
        if (line.starts_with(key)) return number_from<double>(std::string_view(line).substr(key.size()));
    return std::nullopt;
}

}  // namespace

std::optional<std::string> remark_of_ticks(const ForeignInput& input) {
    const double tick_ps = input.scanner.tick_ps;
    const auto stated = tick_in_readme(input.file);
    if (stated && *stated != tick_ps) {
        throw BadInput(fmt::format("{}: tick_ps: {}; expected that of the scanner {}, {}",
                                   readme_of(input.file).string(), *stated, input.scanner.name, tick_ps));
    }
    if (stated || input.kind == gpu::Kind::delayed) return std::nullopt;
    return fmt::format("{}: times are taken as ticks of {} ps, those of the scanner",
                       input.file.filename().string(), tick_ps);
}

std::vector<std::string> unknown_by_readme(const std::filesystem::path& file) {
    std::vector<std::string> unknown;
    const std::vector<std::string> lines = lines_of_readme(file);
    for (const char* phrase : {unknown_energies, unknown_dt}) {
        const std::string said = fmt::format(" does not tell {}.", phrase);
        const auto says = [&](const std::string& line) { return line.ends_with(said); };
        if (std::any_of(lines.begin(), lines.end(), says)) unknown.emplace_back(phrase);
    }
    return unknown;
}

}  // namespace petacq::petlm
