// A stretch of detector time: what happens in it, what is detected, and what the boards read out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/hit.hpp"

namespace petacq::sim {

struct EventCounts {
    std::uint64_t annihilations = 0;  ///< followed one by one, see EventGenerator::decays
    std::uint64_t scattered = 0;      ///< of these, with a scattered photon
    std::uint64_t photons_detected = 0;
    std::uint64_t gammas_detected = 0;  ///< of these photons, gammas of a nuclide
    std::uint64_t pairs_detected = 0;   ///< annihilations of which both photons were detected
    std::uint64_t intrinsic = 0;
    std::uint64_t darks = 0;
    std::uint64_t unreadable = 0;  ///< hits in crystals to which no position maps, or that are dead
    EventCounts& operator+=(const EventCounts& o) {
        annihilations += o.annihilations;
        scattered += o.scattered;
        photons_detected += o.photons_detected;
        gammas_detected += o.gammas_detected;
        pairs_detected += o.pairs_detected;
        intrinsic += o.intrinsic;
        darks += o.darks;
        unreadable += o.unreadable;
        return *this;
    }
    bool operator==(const EventCounts&) const = default;
};

/// A hit before it is read out.
struct Detection {
    std::uint64_t annihilation;
    double ticks;  ///< since the start of the chunk
    float energy;  ///< keV
    std::uint32_t crystal;
    std::uint32_t choice;  ///< of the position
    std::uint8_t kind;
    std::uint8_t history;
};

/// What a photon left in a crystal.
struct Deposit {
    std::uint32_t crystal;
    double energy;                 ///< keV
    double path_mm;                ///< of the photon to its first interaction there
    std::uint8_t object_scatters;  ///< of the photon before that
};

struct Chunk {
    std::uint64_t index = 0;
    std::vector<Hit> hits;             ///< ordered by source and then by raw time
    std::vector<std::uint32_t> first;  ///< [source + 1]: where its hits begin
    EventCounts counts;

    // Only for the generator.
    struct Key {
        std::uint64_t time;
        std::uint32_t hit;
    };
    std::vector<Detection> detections;
    std::vector<Deposit> deposits;  ///< of one photon or decay
    std::vector<Hit> unsorted;
    std::vector<Key> keys;
    std::vector<std::uint32_t> fill;
};

/// Whose hit it is.
struct HitOrigin {
    std::uint64_t id;
    std::uint8_t kind;
    std::uint8_t history;
};

/// A chunk in the making.
struct ChunkDraft {
    Random random;
    Chunk& chunk;
    std::uint64_t begin;  ///< ticks at which decays begin
    std::uint64_t start;  ///< ticks at which the chunk starts

    /// Ticks since decays begin, from those since the start of the chunk.
    [[nodiscard]] double since_begin(double ticks) const {
        return static_cast<double>(start - begin) + ticks;
    }
    void detect(std::uint32_t crystal, double ticks, double energy, const HitOrigin& origin) {
        const auto choice = static_cast<std::uint32_t>(random.bits() >> 32);
        chunk.detections.push_back({origin.id, ticks, static_cast<float>(std::max(energy, 0.0)), crystal,
                                    choice, origin.kind, origin.history});
    }
};

}  // namespace petacq::sim
