// Conversion of an uploaded slice on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/base/layout.hpp"
#include "gpu/cuda/base/single_arrays.hpp"

namespace petacq::gpu::cuda {

/// The spectra of the pipeline on the device, shaped like config::Spectra, and which frames count.
struct SpectraArrays {
    std::uint32_t* floods = nullptr;  ///< nullptr: no frame of the slice counts
    std::uint32_t* energies = nullptr;
    std::uint64_t time_low = 0;  ///< raw times, both inclusive
    std::uint64_t time_high = 0;
};

struct ConvertArguments {
    ConversionTables tables;  ///< on the device
    const net::FrameWords* cells = nullptr;
    const SpanRow* rows = nullptr;
    const std::uint32_t* tile_first = nullptr;  ///< [tiles + 1] the row in which a tile of cells starts
    std::uint32_t cell_count = 0;
    std::uint64_t base = 0;       ///< singles below are late; ready singles are stored relative to it
    std::uint64_t watermark = 0;  ///< singles below it are ready, others pending
    bool all_ready = false;
    /// In order of arrival: pending singles of the previous slice, then the cells. The ready gammas come in
    /// the same order from the end backwards.
    SingleArrays ready;
    std::uint64_t room = 0;  ///< in `ready`
    SingleArrays pending;    ///< in order of arrival, with the gammas; absolute times
    SliceHistograms histograms{};
    SpectraArrays spectra;
    TagCell* tags = nullptr;  ///< the tag frames, in any order: as many as there are frames
    ConvertTotals* totals = nullptr;
    // Words through which tiles communicate: placement_words() of them, zero before the first slice. Each
    // slice is a round.
    std::uint64_t* words = nullptr;
    std::uint32_t round = 0;  ///< at most last_round
};

/// The number of rounds after which the words must be cleared.
inline constexpr std::uint32_t last_round = (1U << 29) - 1;
std::size_t placement_words(std::uint32_t pending_room, std::uint32_t cell_room);

/// Distributes the singles that were pending before the slice to ready or pending, like converted ones.
void launch_split(const ConvertArguments& arguments, SingleArrays waiting, std::uint32_t count,
                  cudaStream_t stream);
/// Converts every frame of the slice. Adds to totals and histograms, which must be zero at the start, and to
/// the spectra.
void launch_convert(const ConvertArguments& arguments, cudaStream_t stream);
/// totals[i] += slice[i] for all the histograms of a slice.
void launch_fold(const SliceHistograms& slice, const HistogramSizes& sizes, std::uint64_t* totals,
                 cudaStream_t stream);
/// Whether the device can run the kernels.
cudaError_t probe_kernels();

}  // namespace petacq::gpu::cuda
