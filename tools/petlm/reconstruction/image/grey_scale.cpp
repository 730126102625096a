#include "tools/petlm/reconstruction/image/grey_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

namespace petacq::image {
namespace {

std::string number(float value) {
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

}  // namespace

double GreyScale::darkness(double value) const {
    if (!(value > 0) || !(black > 0)) return 0;
    if (value < half) return value / half / 2;
    if (value < black) return 0.5 + (value - half) / (black - half) / 2;
    return 1;
}

std::string GreyScale::text() const {
    const std::string end = given ? " or more (--max)" : ", the largest value";
    if (even()) return fmt::format("White: 0, black: {}{}; grey rises evenly.", number(black), end);
    return fmt::format(
        "White: 0, half black: {}, black: {}{}; grey rises evenly up to half black and, more slowly, "
        "from there.",
        number(half), number(black), end);
}

GreyScale grey_scale(std::span<const float> values, std::optional<double> black) {
    GreyScale scale;
    if (black) {
        scale.black = static_cast<float>(*black);
        scale.half = scale.black / 2;
        scale.given = true;
        return scale;
    }
    std::vector<float> rising;
    std::copy_if(values.begin(), values.end(), std::back_inserter(rising), [](float v) { return v > 0; });
    if (rising.empty()) return scale;
    std::sort(rising.begin(), rising.end());
    scale.black = rising.back();
    const double quarter = std::accumulate(rising.begin(), rising.end(), 0.0) / 4;
    double below = 0;
    const auto at =
        std::find_if(rising.begin(), rising.end(), [&](float v) { return (below += v) >= quarter; });
    scale.half = std::min(3 * (at == rising.end() ? rising.back() : *at), scale.black / 2);
    return scale;
}

}  // namespace petacq::image
