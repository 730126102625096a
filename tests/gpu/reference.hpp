// The slow, obvious reference: conversion, order, coincidences and triples written out from the contract
// (spec sections 2 to 6 and 11) and nothing else. It shares no code with the pipeline; only the record types
// are the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms/good_pairs.hpp"

namespace petacq::test {

/// The 16 bytes of a frame, aligned as the pipeline requires.
struct alignas(16) RawFrame {
    std::array<std::byte, 16> bytes{};
};

/// The fate of one frame, in the order in which the reasons are tested.
enum class Fate : std::uint8_t {
    bad_marker,
    bad_address,
    outside_crystal,
    time_jump,
    bad_time,
    late,
    below_window,
    above_window,
    accepted
};
inline constexpr std::size_t fate_count = 9;

struct Limits {
    std::uint64_t low = 0;  ///< raw times outside [low, high] are time jumps
    std::uint64_t high = UINT64_MAX;
    std::uint64_t late_below = 0;  ///< corrected times below are late
    std::uint32_t source = 0;      ///< of the frame: FrameSpan::source
    std::uint16_t tag_source = 0;  ///< of the frame: FrameSpan::tag_source
};

struct Converted {
    Fate fate = Fate::bad_marker;
    gpu::Single single;             ///< crystal and energy when in_crystal; time when late or tested after it
    bool is_tag = false;            ///< its fate is time_jump, late or accepted
    gpu::Tag tag;                   ///< of a tag
    bool in_crystal = false;        ///< markers and address are right and a crystal was hit
    bool in_energy_window = false;  ///< without the filter: every single in a crystal
    bool is_gamma = false;          ///< accepted as a gamma
    std::uint32_t bdm = 0;
    std::uint32_t du = 0;
    std::int32_t temperature_16ths = 0;
};

/// Uses geometry, markers, sources and energy window of the options.
Converted reference_convert(const RawFrame& frame, const gpu::PipelineOptions& options,
                            const config::Calibration& calibration, const Limits& limits);

/// Crystals of a unit, and the most of any unit.
std::uint32_t reference_crystals_of_unit(const config::Geometry& geometry, std::size_t unit);
std::uint32_t reference_crystals_per_du(const config::Geometry& geometry);
/// The crystal and the local crystal that an entry of the position table names; entry < crystals of the unit.
struct CrystalNumbers {
    std::uint32_t local = 0;
    std::uint32_t crystal = 0;
};
CrystalNumbers reference_crystal(const config::Geometry& geometry, std::uint32_t bdm, std::uint32_t du,
                                 std::uint32_t origin);

void count_fate(gpu::FrameCounts& counts, Fate fate);
void count_tag(gpu::TagCounts& counts, Fate fate);
gpu::SinglesHistograms empty_histograms(const gpu::PipelineOptions& options);
void add_to_histograms(gpu::SinglesHistograms& histograms, const config::Geometry& geometry,
                       const Converted& converted);

/// A frame of a span, by its position in it.
RawFrame frame_of(const gpu::FrameSpan& span, std::uint64_t index);
/// Bytes 2 to 9 of a frame.
std::uint64_t raw_time_of(const RawFrame& frame);
/// Counts a frame that is no tag if its raw time lies in the range and the window of its span.
void add_to_spectra(config::Spectra& spectra, const config::Geometry& geometry, const RawFrame& frame,
                    const Converted& converted, const gpu::FrameSpan& span, const gpu::TickRange& times);

/// The order of singles: (time, crystal, energy).
bool single_before(const gpu::Single& a, const gpu::Single& b);
/// The order of records: (time, kind, crystal_a, dt, crystal_b, energy_a, energy_b).
bool coincidence_before(const gpu::Coincidence& a, const gpu::Coincidence& b);
/// The order of tags: (time, source, channel, kind, value).
bool tag_before(const gpu::Tag& a, const gpu::Tag& b);
/// Whether two singles may pair: crystals differ, modules far enough apart, rings near enough; in the long
/// form also groups, z and the field of view.
bool reference_good(const config::Geometry& geometry, const gpu::CoincidenceRules& rules,
                    std::uint32_t crystal_a, std::uint32_t crystal_b);

/// The results for the accepted singles of one segment.
struct Decided {
    gpu::RecordVector<gpu::Coincidence> coincidences;  ///< in record order
    gpu::RecordVector<gpu::Single> singles;            ///< in order, with the gammas
    gpu::RecordVector<gpu::Triple> triples;            ///< in order
    gpu::SingleCounts counts;
    gpu::GammaCounts gamma_counts;

    /// A pair or a single, and the time of the opener with which it is decided. No order.
    struct Pair {
        std::uint64_t opened;
        gpu::Coincidence record;
    };
    struct Member {
        std::uint64_t opened;
        std::uint32_t crystal;
        bool alone;
    };
    std::vector<Pair> pairs;
    std::vector<Member> members;
    std::vector<Pair> refused;  ///< windows of two singles that geometry refuses
    /// The windows of one or two singles whose energies count.
    struct Energies {
        std::uint64_t opened;
        std::vector<float> singles;
    };
    std::vector<Energies> energies;
};
Decided reference_coincidences(gpu::RecordVector<gpu::Single> singles, const config::Geometry& geometry,
                               const gpu::CoincidenceRules& rules);
/// Adds the gammas of the segment, in any order, and their triples.
void add_reference_triples(Decided& decided, gpu::RecordVector<gpu::Single> gammas,
                           const gpu::GammaRules& rules);

/// Adds what is decided with openers in [from, to), or from `from` on, without the counts.
void add_reference_sums(gpu::IntervalSums& sums, const Decided& decided, const config::Geometry& geometry,
                        std::uint64_t from, std::optional<std::uint64_t> to);

/// The sums over good pairs by their definition, pair by pair. It takes from the pipeline which pairs are
/// good, in which cell a crystal lies and, in the long form, on which side.
gpu::PairProducts reference_pair_products(const config::Geometry& g, const gpu::CoincidenceRules& rules,
                                          const gpu::CrystalValues& values,
                                          const std::vector<gpu::PairChances>& chances);

}  // namespace petacq::test
