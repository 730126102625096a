// The bytes of values in a PETSIRD file: the binary coding of yardl. Whole numbers are written 7 bits at a
// time, the low ones first; the high bit says that more follow. Floating-point numbers are as in memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace petacq::petsird {

/// Appends values to `bytes`. A vector is its length, then its values.
struct Coded {
    std::string bytes{};

    Coded& number(std::uint64_t value) {
        for (; value > 0x7F; value >>= 7U)
            bytes.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
        bytes.push_back(static_cast<char>(value));
        return *this;
    }
    /// One that may be negative, and every enum.
    Coded& integer(std::int64_t value) {
        return number((static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63));
    }
    Coded& f32(double value) {
        const auto rounded = static_cast<float>(value);
        bytes.append(reinterpret_cast<const char*>(&rounded), sizeof rounded);
        return *this;
    }
    /// Without their number.
    Coded& f32s(std::span<const float> values) {
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
        return *this;
    }
    Coded& text(std::string_view value) {
        number(value.size());
        bytes.append(value);
        return *this;
    }
    Coded& flag(bool value) {
        bytes.push_back(value ? '\1' : '\0');
        return *this;
    }
};

/// A number as it is in the file, for numbers that are written often: its bytes in the low ones of `word`.
struct Varint {
    std::uint32_t word = 0;
    std::uint32_t length = 1;

    static constexpr std::uint32_t end = 1U << 28U;  ///< numbers from here on need more bytes
    static constexpr Varint of(std::uint32_t value) {
        Varint out{value & 0x7FU, 1};
        while ((value >>= 7U) != 0) {
            out.word |= 0x80U << (8 * (out.length - 1));
            out.word |= (value & 0x7FU) << (8 * out.length);
            ++out.length;
        }
        return out;
    }
};

/// Where something is: a rotation and a translation, row by row.
using Matrix = std::array<double, 12>;

}  // namespace petacq::petsird
