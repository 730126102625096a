// Small pictures as text that a page can contain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petacq::petcal {

/// A grey picture, row by row from the top, 0 black to 255 white.
struct GreyPicture {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint8_t> pixels;
};

/// "data:image/png;base64,...". Throws std::runtime_error when zlib fails.
std::string png_data(const GreyPicture& picture);

}  // namespace petacq::petcal
