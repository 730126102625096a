// Figures of a detector that the reports share: HTML with pictures inside.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/flood.hpp"
#include "tools/report/figures.hpp"

namespace petacq::petcal {

using report::Curve;
using report::no_value;

/// A spectrum of config::Spectra from 0 to 1020 keV, without its last bin, with a line at 511 keV; a second
/// one in another colour. `caption` is HTML.
std::string spectrum_figure(const Curve& curve, const Curve* other, const std::string& caption);

/// All crystals, in the order that crystals_order() states; dark at `low`, white at `high`, black where the
/// value is no_value. `value`: of a crystal number. `caption` is HTML.
std::string crystals_figure(const config::Scanner& scanner, double low, double high,
                            const std::function<double(std::uint32_t)>& value, const std::string& caption);
/// A sentence without its end.
std::string crystals_order(const config::Scanner& scanner);

/// The flood map, brighter as the square root of its counts; large maps at half their size.
report::GreyPicture flood_picture(const FloodShape& shape, std::span<const std::uint32_t> flood);

}  // namespace petacq::petcal
