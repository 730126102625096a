#include "tools/petcal/steps/refusals.hpp"

#include <cstddef>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

std::vector<std::string> check_refusals(const config::Geometry& geometry,
                                        const std::vector<std::string>& refused, bool partial) {
    constexpr std::size_t max_shown = 10;
    std::size_t count = 0;
    std::string text;
    for (std::size_t unit = 0; unit < refused.size(); ++unit) {
        if (refused[unit].empty()) continue;
        if (++count <= max_shown) text += "\n  " + unit_name(geometry, unit) + ": " + refused[unit];
    }
    if (count == 0) return {};
    if (count > max_shown) text += "\n  and " + std::to_string(count - max_shown) + " more";
    text =
        std::to_string(count) + " of " + std::to_string(refused.size()) + " units cannot be derived" + text;
    if (!partial) text += "\nWith --partial these keep what the calibration has.";
    if (!partial || count == refused.size()) throw config::Error(text);
    config::print_warning("petcal", text);
    return {text};
}

}  // namespace petacq::petcal
