#include "tools/report/png.hpp"

#include <png.h>

#include <stdexcept>

namespace petacq::report {
namespace {

template <class Picture>
std::string written(const Picture& picture, std::uint32_t format, std::uint32_t flags) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = picture.width;
    image.height = picture.height;
    image.format = format;
    image.flags = flags;
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string out(size, '\0');
    if (png_image_write_to_memory(&image, out.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
        throw std::runtime_error(std::string("libpng cannot write a picture: ") + image.message);
    out.resize(size);
    return out;
}

}  // namespace

std::string png_of(const GreyPicture& picture) {
    // Without filters, which enlarge noisy pictures by half.
    return written(picture, PNG_FORMAT_GRAY, PNG_IMAGE_FLAG_FAST);
}

std::string png_of(const ColourPicture& picture) {
    return written(picture, PNG_FORMAT_RGB, 0);
}

}  // namespace petacq::report
