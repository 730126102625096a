// STIR: projection data of a scanner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "config/scanner/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/export/geometry/stir_detectors.hpp"

namespace petacq::petlm {

/// Projection data as the export describes them.
struct StirProjections {
    std::int64_t segments;    ///< -segments to segments; the number is the difference of the rings
    std::int64_t tangential;  ///< number of positions, odd

    /// Of one set of data.
    [[nodiscard]] std::uint64_t bins(const StirDetectors& detectors) const;
};

/// The width of a bin of the template, mm. STIR's voxels have this width divided by the zoom.
double stir_bin_mm(const config::Scanner& scanner);

/// The header of projection data whose values are in the file `data`. `study` are lines of it.
void write_stir_header(const std::filesystem::path& file, const std::string& data,
                       const config::Scanner& scanner, const StirDetectors& detectors,
                       const StirProjections& projections, double depth_mm, const std::string& study);

/// Writes the values of projection data, value(a, b) for the two crystals of each bin; it is called by
/// several threads at once. As STIR numbers bins, tangential position t of view v joins the detectors v +
/// floor(t / 2) and v + half a ring - ceil(t / 2).
void write_stir_values(const std::filesystem::path& file, const StirDetectors& detectors,
                       const StirProjections& projections, net::WorkerPool& pool,
                       const std::function<double(std::uint32_t a, std::uint32_t b)>& value);

}  // namespace petacq::petlm
