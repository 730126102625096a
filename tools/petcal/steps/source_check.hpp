// Whether the source of a scan is what the command line says, and reaches all crystals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/pairs/source_place.hpp"

namespace petacq::petcal {

/// As many lines tell the place of a source to some hundredths of a millimetre.
inline constexpr std::size_t lines_to_check = 300'000;

struct SourceCheck {
    std::string run;  ///< named in messages
    estimate::KnownSource said;
    double depth_mm = 0;   ///< of the mean detection
    double limit_mm = 0;   ///< how far from where it was said to be the source may lie
    const char* option{};  ///< that says where it is: "--cylinder"
};

/// Throws config::Error that names exchanged modules; or by how much the source is not where it was said to
/// be, and where it is.
void check_source(const config::Scanner& scanner, std::span<const estimate::Line> lines,
                  const SourceCheck& check);

/// Throws config::Error that names the rings without counts (estimate::rings_without).
void check_rings(const config::Scanner& scanner, std::span<const double> counts,
                 std::span<const double> expected, const SourceCheck& check);

/// The crystals of a scanner that turns see only a source around the axis as if they stood still. Throws
/// config::Error for another. `option`: that says where it is.
void check_on_axis(const config::Scanner& scanner, double x_mm, double y_mm, const char* option);

}  // namespace petacq::petcal
