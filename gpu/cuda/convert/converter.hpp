// Conversion on one device: its copy of the calibration, its streams, and what it has counted.
//
// The first device of the back-end converts slices into the arrays of the singles that wait there
// (WaitingSingles). Any other converts ahead, into arrays of the slice: conversion needs nothing but two
// watermarks, which are known when the slice is submitted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "gpu/conversion_tables.hpp"
#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/convert/convert_kernels.hpp"
#include "gpu/cuda/convert/histogram_totals.hpp"
#include "gpu/cuda/convert/spectra.hpp"
#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/cuda/transfer/upload.hpp"

namespace petacq::gpu::cuda {

/// The calibration on the current device. It is not part of the memory of the back-end, since it can be
/// replaced.
class DeviceTables {
  public:
    DeviceTables(const OwnedTables& tables, bool is_plan);
    [[nodiscard]] const ConversionTables& view() const { return view_; }
    [[nodiscard]] std::uint64_t bytes() const { return memory_.device_bytes(); }

  private:
    Memory memory_;
    ConversionTables view_;
};

/// Singles that wait for the watermark, in any order, and their number.
struct CountedSingles {
    SingleArrays singles;
    std::uint32_t count = 0;
};

/// One thread at a time uploads, and one converts. Any thread may call the functions below "What was
/// counted".
class Converter {
  public:
    /// On the current device. `max_waiting`: the most singles that wait when a slice is converted or split.
    /// With Purpose::plan it cannot be used.
    Converter(const PipelineOptions& options, const OwnedTables& tables, std::uint64_t max_waiting,
              Memory::Purpose purpose);
    Converter(const Converter&) = delete;
    Converter& operator=(const Converter&) = delete;
    ~Converter() { synchronize(); }

    [[nodiscard]] int device() const { return device_; }
    [[nodiscard]] Memory& memory() { return memory_; }
    /// Copies frames to the device.
    [[nodiscard]] const Stream& up() const { return up_; }
    /// Converts them.
    [[nodiscard]] const Stream& stream() const { return stream_; }

    /// The tables for set_tables(). Throws when the device has no memory for them.
    [[nodiscard]] std::unique_ptr<DeviceTables> make_tables(const OwnedTables& tables) const;
    /// Converts frames with these tables from now on. REQUIRES: no conversion is in progress.
    void set_tables(std::unique_ptr<DeviceTables> tables) { tables_ = std::move(tables); }
    /// Memory on the device, with the tables.
    [[nodiscard]] std::uint64_t device_bytes() const { return memory_.device_bytes() + tables_->bytes(); }
    /// Waits until its streams have nothing to do.
    void synchronize() const;

    void upload(DeviceSlice& slice) { uploader_.upload(slice, up_); }
    /// Converts the frames of the slice, which must have arrived, and distributes them and the singles that
    /// wait to `output`. Ends with a copy of the totals to the host.
    void convert(DeviceSlice& slice, const ConvertOutput& output, const CountedSingles& waiting,
                 cudaStream_t stream);
    /// Distributes singles that wait, for a slice converted on another device: behind the singles and on top
    /// of the totals from there, which must be on the host. Ends with a copy of the totals.
    void split(DeviceSlice& slice, const ConvertOutput& output, const CountedSingles& waiting,
               cudaStream_t stream);
    /// Waits for the conversion of a slice that was converted here, which is when `converted` has come, and
    /// copies its tags to the host.
    void wait(DeviceSlice& slice, const Event& converted) const;

    // What was counted:

    /// Adds the histograms of a slice to the totals, and records that they have been read.
    void fold(const SliceHistograms& slice, const Event& folded) const;
    void copy_histograms(SinglesHistograms& out) const;
    /// Requested by PipelineOptions::spectra. REQUIRES: no conversion is in progress.
    void take_spectra(config::Spectra& out);
    void copy_unit_spectra(std::uint32_t unit, UnitSpectra& out) const;

  private:
    [[nodiscard]] ConvertArguments arguments(const DeviceSlice& slice, const ConvertOutput& output,
                                             cudaStream_t stream);

    const Input input_;
    const std::uint32_t crystals_;
    int device_ = 0;
    // The streams come before the memory, because freeing the memory waits for them.
    Stream up_;
    Stream stream_;
    Stream books_;
    Memory memory_;
    Uploader uploader_;
    std::unique_ptr<DeviceTables> tables_;
    std::size_t words_count_ = 0;
    std::uint64_t* words_ = nullptr;
    std::uint32_t rounds_ = 0;  // since they were cleared
    ConvertTotals* split_totals_ = nullptr;
    DeviceSpectra spectra_;
    HistogramTotals histograms_;
};

}  // namespace petacq::gpu::cuda
