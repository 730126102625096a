// The form in which coincidences cross the bus: 24 bytes instead of 32 where crystals and time difference fit
// into one word. What comes down slows down the frames that go up at the same time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/base/records.hpp"
#include "net/wire.hpp"

namespace petacq::gpu::cuda {

struct PackedRecord {
    std::uint64_t time;
    std::uint64_t energies;  ///< energy_b << 32 | energy_a, as bits
    std::uint64_t rest;      ///< from the highest bit on: crystal_b, crystal_a, dt, kind
};

struct RecordPacking {
    std::uint32_t dt_bits = 0;
    std::uint32_t crystal_bits = 0;
    bool fits = false;  ///< otherwise records cross the bus as they are

    /// For time differences of at most `window` ticks.
    static RecordPacking of(std::uint32_t crystals, std::uint32_t window) {
        RecordPacking p;
        p.dt_bits = static_cast<std::uint32_t>(std::bit_width(window));
        p.crystal_bits = static_cast<std::uint32_t>(std::bit_width(crystals));
        p.fits = 1 + p.dt_bits + 2 * p.crystal_bits <= 64;
        return p;
    }
    [[nodiscard]] std::size_t record_bytes() const {
        return fits ? sizeof(PackedRecord) : sizeof(Coincidence);
    }

    [[nodiscard]] PETACQ_HD PackedRecord pack(const Coincidence& c) const {
        const std::uint64_t crystals = std::uint64_t{c.crystal_b} << crystal_bits | c.crystal_a;
        return {c.time,
                std::uint64_t{std::bit_cast<std::uint32_t>(c.energy_b)} << 32 |
                    std::bit_cast<std::uint32_t>(c.energy_a),
                (crystals << dt_bits | c.dt) << 1 | static_cast<std::uint32_t>(c.kind)};
    }
    [[nodiscard]] PETACQ_HD Coincidence unpack(const PackedRecord& p) const {
        const auto low_bits = [](std::uint64_t word, std::uint32_t bits) {
            return static_cast<std::uint32_t>(word & ((std::uint64_t{1} << bits) - 1));
        };
        Coincidence c;
        c.time = p.time;
        c.dt = low_bits(p.rest >> 1, dt_bits);
        c.crystal_a = low_bits(p.rest >> (1 + dt_bits), crystal_bits);
        c.crystal_b = low_bits(p.rest >> (1 + dt_bits + crystal_bits), crystal_bits);
        c.energy_a = std::bit_cast<float>(static_cast<std::uint32_t>(p.energies));
        c.energy_b = std::bit_cast<float>(static_cast<std::uint32_t>(p.energies >> 32));
        c.kind = static_cast<Kind>(p.rest & 1);
        return c;
    }
};

}  // namespace petacq::gpu::cuda
