// Stands in for pictures.cpp in a program built without cairo.
#include "tools/petlm/image/pictures.hpp"

namespace petacq::image {

std::optional<std::string> no_pictures_reason() {
    return "this program was built without cairo";
}
void write_projections(const std::filesystem::path& /*file*/, const Grid& /*grid*/,
                       std::span<const float> /*image*/, const PictureTexts& /*texts*/,
                       std::optional<double> /*black*/) {}
void write_slices(const std::filesystem::path& /*file*/, const Grid& /*grid*/,
                  std::span<const float> /*image*/, const PictureTexts& /*texts*/,
                  std::optional<double> /*black*/) {}

}  // namespace petacq::image
