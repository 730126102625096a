// Shared by the tests of the simulator: example scanners and a run in memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "config/make_calibration.hpp"
#include "net/wire.hpp"
#include "tools/petsim/simulation/simulation.hpp"

namespace petacq::test {

/// Uneven in every direction: crystals.y != crystals.z, blocks.y != blocks.z, several modules.
inline config::Scanner small_scanner() {
    config::Scanner s;
    s.name = "test";
    s.geometry = {6, {1, 2, 2}, {1, 2, 3}, {1, 5, 4}, 24, 6, 64};
    s.tick_ps = 15.625;
    s.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    return s;
}

inline config::Calibration small_calibration(std::int32_t offsets = 40) {
    config::CalibrationModel model;
    model.seed = 7;
    model.nonlinearity = 0.2;
    model.time_offset_ticks = offsets;
    return config::make_calibration(small_scanner(), model);
}

/// Mean and spread of numbers.
struct Moments {
    double n = 0;
    double sum = 0;
    double squares = 0;
    void add(double v) {
        n += 1;
        sum += v;
        squares += v * v;
    }
    [[nodiscard]] double mean() const { return sum / n; }
    [[nodiscard]] double variance() const { return squares / n - mean() * mean(); }
    [[nodiscard]] double sigma() const { return std::sqrt(variance()); }
};

/// A point source at the centre, 20 ms.
inline sim::Options point_options(double mbq = 5, double duration_s = 0.02) {
    sim::Options o;
    o.seed = 11;
    o.duration_s = duration_s;
    sim::ActivitySource point;
    point.activity_mbq = mbq;
    o.activity = {point};
    return o;
}

struct Sent {
    std::uint16_t source;
    std::uint64_t sequence;
    std::uint64_t due_ticks;
    std::vector<std::byte> bytes;
    bool operator==(const Sent&) const = default;
    /// The header of a well-formed sequenced datagram.
    [[nodiscard]] std::size_t frames() const { return (bytes.size() - net::header_bytes) / net::frame_bytes; }
    [[nodiscard]] net::Frame frame(std::size_t i, net::FrameVersion version = net::FrameVersion::one) const {
        return net::decode_frame(bytes.data() + net::header_bytes + i * net::frame_bytes, version);
    }
};

struct Recorded {
    std::vector<Sent> datagrams;
    std::vector<sim::TruthRecord> truth;
    sim::Statistics statistics;
};

inline Recorded record(const config::Scanner& scanner, const config::Calibration& calibration,
                       const sim::Options& options, const sim::Detector* detector = nullptr) {
    Recorded out;
    sim::Simulation simulation(scanner, calibration, options, detector);
    simulation.run(
        [&](const sim::Datagram& d) {
            out.datagrams.push_back({d.source, d.sequence, d.due_ticks, {d.bytes.begin(), d.bytes.end()}});
        },
        [&](std::span<const sim::TruthRecord> records) {
            out.truth.insert(out.truth.end(), records.begin(), records.end());
        });
    out.statistics = simulation.statistics();
    return out;
}

inline Recorded record(const sim::Options& options) {
    return record(small_scanner(), small_calibration(), options);
}

/// The frame on the wire of each record of the truth, in that order; nothing may be lost.
inline std::vector<net::Frame> frames_of(const Recorded& run) {
    std::map<std::pair<std::uint16_t, std::uint64_t>, const Sent*> by_sequence;
    for (const Sent& d : run.datagrams)
        by_sequence[{d.source, d.sequence}] = &d;
    std::vector<net::Frame> frames;
    for (const sim::TruthRecord& t : run.truth)
        frames.push_back(by_sequence.at({t.source, t.sequence})->frame(t.index));
    return frames;
}

}  // namespace petacq::test
