#include "tools/petlm/import/crystal_numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

constexpr const char* table_header = "crystal,number_in_file";

/// A point on the surface of a crystal may be found outside of it by rounding.
constexpr double rounding_mm = 0.01;

}  // namespace

void CrystalNumbers::add(std::uint64_t number, std::uint32_t crystal) {
    if (crystal >= crystals_) {
        throw BadInput(fmt::format("{}: crystal {}; expected one of the {} of the scanner", file_.string(),
                                   crystal, crystals_));
    }
    if (!crystal_of_.emplace(number, crystal).second)
        throw BadInput(fmt::format("{}: number {} twice; expected each once", file_.string(), number));
}

std::string CrystalNumbers::expectation() const {
    return same_ ? fmt::format("a number below {}, the crystals of the scanner", crystals_)
                 : fmt::format("a number of {}", file_.string());
}

bool is_crystal_number_table(const std::filesystem::path& file) {
    LineReader lines(file);
    return lines.next() && lines.line() == table_header;
}

CrystalNumbers crystal_number_table(const std::filesystem::path& file, std::uint32_t crystals) {
    LineReader lines(file);
    if (!lines.next() || lines.line() != table_header) {
        throw BadInput(
            fmt::format("{}: expected a table whose first line is {}, as petacq-geometry --numbers writes "
                        "it",
                        file.string(), table_header));
    }
    CrystalNumbers numbers(crystals, file);
    while (lines.next()) {
        const auto fields = lines.fields(',');
        const auto crystal = fields.size() == 2 ? number_from<std::uint32_t>(fields[0]) : std::nullopt;
        const auto number = fields.size() == 2 ? number_from<std::uint64_t>(fields[1]) : std::nullopt;
        if (!crystal || !number) lines.refuse("expected two numbers, crystal,number_in_file");
        numbers.add(*number, *crystal);
    }
    return numbers;
}

std::uint32_t CrystalsByPlace::crystal_at(const geometry::Vector3& point, const std::string& what) {
    const auto refuse = [&](const std::string& found) {
        throw BadInput(fmt::format("{}: {} at {:.4f}, {:.4f}, {:.4f} mm {}", file_.string(), what, point[0],
                                   point[1], point[2], found));
    };
    if (!std::isfinite(point[0]) || !std::isfinite(point[1]) || !std::isfinite(point[2]))
        refuse("; expected finite numbers");
    std::optional<std::uint32_t> crystal = finder_.crystal_at(point);
    const double radius = std::hypot(point[0], point[1]);
    for (const double step : {rounding_mm, -rounding_mm}) {
        if (crystal || radius == 0) break;
        const double factor = 1 + step / radius;
        crystal = finder_.crystal_at({point[0] * factor, point[1] * factor, point[2]});
    }
    if (!crystal) refuse("is in no crystal of the scanner; expected a table of this scanner");
    if (taken_[*crystal]) refuse(fmt::format("is in crystal {}, as an earlier one is", *crystal));
    taken_[*crystal] = true;
    return *crystal;
}

}  // namespace petacq::petlm
