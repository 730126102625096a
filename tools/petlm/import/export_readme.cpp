#include "tools/petlm/import/stated_ticks.hpp"

#include <fmt/format.h>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

std::optional<double> tick_in_readme(const std::filesystem::path& readme) {
    constexpr std::string_view key = "tick_ps: ";
    if (!std::filesystem::is_regular_file(readme)) return std::nullopt;
    LineReader lines(readme);
    if (!lines.next() || !lines.line().starts_with("Made by petlm export")) return std::nullopt;
    while (lines.next())
        if (lines.line().starts_with(key))
            return number_from<double>(std::string_view(lines.line()).substr(key.size()));
    return std::nullopt;
}

}  // namespace

std::optional<std::string> remark_of_ticks(const ForeignInput& input) {
    const std::filesystem::path readme = input.file.string() + ".README.txt";
    const double tick_ps = input.scanner.tick_ps;
    const auto stated = tick_in_readme(readme);
    if (stated && *stated != tick_ps) {
        throw BadInput(fmt::format("{}: tick_ps: {}; expected that of the scanner {}, {}", readme.string(),
                                   *stated, input.scanner.name, tick_ps));
    }
    if (stated || input.kind == gpu::Kind::delayed) return std::nullopt;
    return fmt::format("{}: times are taken as ticks of {} ps, those of the scanner",
                       input.file.filename().string(), tick_ps);
}

}  // namespace petacq::petlm
