// Which grey stands for which value in the pictures of an image.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace petacq::image {

/// White is 0. Grey rises evenly from 0 to `half`, which is half black, and evenly from there to `black`.
/// Greater values are black, too.
struct GreyScale {
    float half = 0;
    float black = 0;
    bool given = false;  ///< by the user; otherwise black is the largest value

    [[nodiscard]] bool even() const { return half == black / 2; }
    /// 0: white, 1: black. White for every value if `black` is 0.
    [[nodiscard]] double darkness(double value) const;
    /// "White: 0, ..."
    [[nodiscard]] std::string text() const;
};

/// With `black`, an even scale that ends there. Otherwise black is the largest of the values. Half black is
/// three times the level below which the values hold a quarter of their sum, but at most half of the largest:
/// what is extended takes the lighter half of the greys, and hot spots, however hot, the darker one, as long
/// as they hold less than three quarters of the sum.
GreyScale grey_scale(std::span<const float> values, std::optional<double> black);

}  // namespace petacq::image
