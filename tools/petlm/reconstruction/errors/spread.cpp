#include "tools/petlm/reconstruction/errors/spread.hpp"

#include <cmath>

namespace petacq::image {

void Spread::add(std::span<const float> image) {
    ++images_;
    const auto n = static_cast<float>(images_);
    for (std::size_t i = 0; i < mean_.size(); ++i) {
        const float difference = image[i] - mean_[i];
        mean_[i] += difference / n;
        squares_[i] += difference * (image[i] - mean_[i]);
    }
}

std::vector<float> Spread::deviation() const {
    std::vector<float> out(squares_.size());
    if (images_ < 2) return out;
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = std::sqrt(squares_[i] / static_cast<float>(images_ - 1));
    return out;
}

}  // namespace petacq::image
