#include "tools/petlm/nema/widths.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace petacq::nema {
namespace {

/// Where the values fall below `level` on the way from `from` in that direction.
std::optional<double> edge_of(std::span<const double> values, std::size_t from, int direction, double level) {
    const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
    auto i = static_cast<std::ptrdiff_t>(from);
    while (i + direction >= 0 && i + direction <= last) {
        const double here = values[static_cast<std::size_t>(i)];
        const double next = values[static_cast<std::size_t>(i + direction)];
        if (next < level) return static_cast<double>(i) + direction * (here - level) / (here - next);
        i += direction;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Widths> widths_of(std::span<const double> values, double step) {
    const auto largest = std::max_element(values.begin(), values.end());
    if (values.size() < 3 || largest == values.begin() || largest == values.end() - 1 || !(*largest > 0))
        return std::nullopt;
    const auto at = static_cast<std::size_t>(largest - values.begin());
    const double left = values[at - 1];
    const double right = values[at + 1];
    const double bend = left - 2 * *largest + right;
    const double shift = bend < 0 ? 0.5 * (left - right) / bend : 0;
    Widths w;
    w.peak = (static_cast<double>(at) + shift) * step;
    w.height = *largest - 0.25 * (left - right) * shift;
    const auto width = [&](double level) -> std::optional<double> {
        const auto low = edge_of(values, at, -1, level);
        const auto high = edge_of(values, at, 1, level);
        if (!low || !high) return std::nullopt;
        return (*high - *low) * step;
    };
    const auto half = width(w.height / 2);
    const auto tenth = width(w.height / 10);
    if (!half) return std::nullopt;
    w.fwhm = *half;
    w.fwtm = tenth.value_or(std::numeric_limits<double>::quiet_NaN());
    return w;
}

}  // namespace petacq::nema
