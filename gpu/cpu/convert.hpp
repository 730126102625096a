// Conversion of frames to singles in one CPU thread.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cpu/cpu_tables.hpp"
#include "gpu/cpu/frame_cursor.hpp"
#include "gpu/cpu/spectra.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/conversion.hpp"
#include "gpu/tags.hpp"

namespace petacq::gpu {

/// The histograms of the frames that one thread has converted for one slice. Counters have 32 bits so that
/// they stay in the cache.
class LocalHistograms {
  public:
    explicit LocalHistograms(const config::Geometry& geometry);
    /// Adds all counts to `total` and resets them to zero.
    void flush_into(SinglesHistograms& total);

    std::vector<std::uint32_t> per_crystal;
    std::vector<std::uint32_t> energy;
    std::vector<std::int64_t> temperature_sum_16ths;
    std::vector<std::uint32_t> temperature_count;
};

/// Totals of the right shape, all zero.
SinglesHistograms make_histograms(const config::Geometry& geometry);

/// Where the frames that one thread has converted for one slice went, and their tags.
struct ConvertedFrames {
    FrameCounts counts;
    AcceptedTags tags;
};

/// Where singles are written, in the order of the frames. Each must have room for one more than the frames.
struct SinglesOut {
    Single* pairs = nullptr;   ///< singles of the energy window
    Single* gammas = nullptr;  ///< singles of the gamma window; nullptr: there is none
};
/// How many were written.
struct SinglesWritten {
    std::size_t pairs = 0;
    std::size_t gammas = 0;
};

/// Converts the next `frames` frames and writes the accepted singles. Frames with a corrected time below
/// `watermark` are late.
SinglesWritten convert_frames(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                              const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                              SinglesOut out);

/// The same, and counts the frames with raw times in `times`, except for time jumps.
SinglesWritten convert_and_count(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                                 const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                                 SinglesOut out, FrameLists& spectra, const TickRange& times);

/// convert_frames() for spans of singles.
SinglesWritten take_singles(FrameCursor& cursor, std::uint64_t frames, std::uint64_t watermark,
                            const HostTables& tables, ConvertedFrames& to, LocalHistograms& histograms,
                            SinglesOut out);

}  // namespace petacq::gpu
