#include "tools/petcal/report/png.hpp"

#include <zlib.h>

#include <stdexcept>
#include <string_view>

namespace petacq::petcal {

namespace {

std::string big_endian(std::uint32_t number) {
    std::string text;
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        text += static_cast<char>(number >> shift & 0xFFU);
    return text;
}

/// Length, type, data and checksum of the type and the data.
std::string chunk(const std::string& type, const std::string& data) {
    const std::string checked = type + data;
    const auto* bytes = reinterpret_cast<const Bytef*>(checked.data());
    const auto sum = static_cast<std::uint32_t>(crc32(0, bytes, static_cast<uInt>(checked.size())));
    return big_endian(static_cast<std::uint32_t>(data.size())) + checked + big_endian(sum);
}

std::string deflated(const std::string& in) {
    uLongf size = compressBound(in.size());
    std::string out(size, '\0');
    constexpr int level = 6;
    if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(in.data()),
                  in.size(), level) != Z_OK)
        throw std::runtime_error("zlib cannot compress a picture");
    out.resize(size);
    return out;
}

std::string base64(std::string_view in) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve(in.size() * 4 / 3 + 4);
    for (std::size_t i = 0; i < in.size(); i += 3) {
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k)
            bits = bits << 8U | (i + k < in.size() ? static_cast<unsigned char>(in[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            out += i + k > in.size() ? '=' : digits[bits >> (18 - 6 * k) & 0x3FU];
    }
    return out;
}

}  // namespace

std::string png_data(const GreyPicture& p) {
    std::string lines;
    for (std::uint32_t y = 0; y < p.height; ++y) {
        lines += '\0';  // no filter
        lines.append(reinterpret_cast<const char*>(&p.pixels[std::size_t{y} * p.width]), p.width);
    }
    using namespace std::string_literals;
    // 8 bits, grey, deflate, no interlacing.
    const std::string header = big_endian(p.width) + big_endian(p.height) + "\x08\x00\x00\x00\x00"s;
    return "data:image/png;base64," + base64("\x89PNG\r\n\x1A\n" + chunk("IHDR", header) +
                                             chunk("IDAT", deflated(lines)) + chunk("IEND", ""));
}

}  // namespace petacq::petcal
