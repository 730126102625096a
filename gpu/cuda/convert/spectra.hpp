// The spectra of the pipeline on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "config/spectra.hpp"
#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/convert/convert_kernels.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::gpu::cuda {

/// Conversion adds to the arrays. The other functions wait for their copies.
class DeviceSpectra {
  public:
    /// Takes its memory from `memory` if spectra are requested. With Purpose::plan it cannot be used.
    DeviceSpectra(const PipelineOptions& options, Memory& memory);

    /// For the conversion of a slice that counts frames with raw times in this range.
    [[nodiscard]] SpectraArrays arrays(const std::optional<TickRange>& times) const;
    /// Pipeline::take_spectra(). REQUIRES: no conversion is in progress.
    void take(config::Spectra& out, cudaStream_t stream);
    /// Pipeline::unit_spectra(). Conversion may be in progress.
    void copy_unit(std::uint32_t unit, UnitSpectra& out, cudaStream_t stream) const;

  private:
    const config::Geometry geometry_;
    std::size_t positions_ = 0;  // of a unit
    std::size_t flood_count_ = 0;
    std::size_t energy_count_ = 0;
    std::uint32_t* floods_ = nullptr;
    std::uint32_t* energies_ = nullptr;
};

}  // namespace petacq::gpu::cuda
