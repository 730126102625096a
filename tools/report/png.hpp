// Writes pictures as PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petacq::report {

/// A grey picture, row by row from the top, 0 black to 255 white.
struct GreyPicture {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint8_t> pixels;
};

/// The same with a red, a green and a blue value for each pixel.
struct ColourPicture {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint8_t> pixels;
};

/// The contents of a PNG file. Both throw std::runtime_error when libpng fails.
std::string png_of(const GreyPicture& picture);
std::string png_of(const ColourPicture& picture);

}  // namespace petacq::report
