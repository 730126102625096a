// The records of SAFIR list-mode, as export and import have them. docs/reference/formats/stir.md.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace petacq::petlm {

/// At the start of the file.
inline constexpr std::array<char, 32> safir_signature{"SAFIR CListModeData"};

inline constexpr std::uint64_t safir_time_record = std::uint64_t{1} << 63U;
inline constexpr std::uint64_t safir_milliseconds = (std::uint64_t{1} << 48U) - 1;  ///< of a time record
inline constexpr std::uint64_t safir_delayed_event = std::uint64_t{1} << 62U;

struct SafirCrystal {
    static constexpr std::uint32_t rings = 256;
    static constexpr std::uint32_t detectors = 65536;
    static constexpr std::uint32_t layers = 16;

    std::uint32_t ring = 0;
    std::uint32_t detector = 0;
    std::uint32_t layer = 0;

    /// Ring in bits 0 to 7, detector from bit 16 on, layer from bit 48 on.
    [[nodiscard]] std::uint64_t number() const {
        return ring | std::uint64_t{detector} << 16U | std::uint64_t{layer} << 48U;
    }
};

/// Bits of each layer in an event of SAFIR. Files of the NeuroLF have three, and are the same otherwise.
inline constexpr unsigned safir_layer_bits = 4;
inline constexpr unsigned neurolf_layer_bits = 3;

/// An event of two crystals, by their numbers: ring a 0..7, ring b 8..15, detector a 16..31, detector
/// b 32..47, layer a 48..51, layer b 52..55, the rest 0.
inline std::uint64_t safir_event(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t layer = std::uint64_t{0xF} << 48U;
    return a | (b & 0xFFU) << 8U | (b & 0xFFFF0000U) << 16U | (b & layer) << 4U;
}
inline std::pair<SafirCrystal, SafirCrystal> crystals_of_safir(std::uint64_t event,
                                                               unsigned layer_bits = safir_layer_bits) {
    const std::uint64_t layers = (std::uint64_t{1} << layer_bits) - 1;
    const auto bits = [event](unsigned first, std::uint64_t mask) {
        return static_cast<std::uint32_t>(event >> first & mask);
    };
    return {{bits(0, 0xFF), bits(16, 0xFFFF), bits(48, layers)},
            {bits(8, 0xFF), bits(32, 0xFFFF), bits(48 + layer_bits, layers)}};
}

}  // namespace petacq::petlm
