// STIR: projection data of a scanner, and its numbering of detectors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "net/base/worker_pool.hpp"

namespace petacq::petlm {

/// Maps crystals to STIR's detectors: detector 0 of a ring is the first one from -y towards +x.
class StirDetectors {
  public:
    explicit StirDetectors(const config::Scanner& scanner);
    [[nodiscard]] std::uint32_t ring_of(std::uint32_t crystal) const { return crystal / in_ring_; }
    [[nodiscard]] std::uint32_t detector_of(std::uint32_t crystal) const {
        return (crystal % in_ring_ + in_ring_ - first_) % in_ring_;
    }
    [[nodiscard]] std::uint32_t crystal_of(std::uint32_t ring, std::uint32_t detector) const {
        return ring * in_ring_ + (detector + first_) % in_ring_;
    }
    /// Ring in bits 0 to 15, detector from bit 16 on.
    [[nodiscard]] std::uint64_t code(std::uint32_t crystal) const { return codes_[crystal]; }

  private:
    std::uint32_t in_ring_;
    std::uint32_t first_ = 0;  ///< index in its ring of the crystal that is STIR's detector 0
    std::vector<std::uint64_t> codes_;
};

/// Projection data as the export describes them.
struct StirProjections {
    std::int64_t segments;    ///< -segments to segments; the number is the difference of the rings
    std::int64_t tangential;  ///< number of positions, odd

    /// Of one set of data.
    [[nodiscard]] std::uint64_t bins(const config::Geometry& geometry) const;
};

/// The width of a bin of the template, mm. STIR's voxels have this width divided by the zoom.
inline double stir_bin_mm(const config::Scanner& scanner) {
    return scanner.dimensions.crystal_pitch_y_mm / 2;
}

/// The header of projection data whose values are in the file `data`. `study` are lines of it.
void write_stir_header(const std::filesystem::path& file, const std::string& data,
                       const config::Scanner& scanner, const StirProjections& projections, double depth_mm,
                       const std::string& study);

/// Writes the values of projection data, value(a, b) for the two crystals of each bin; it is called by
/// several threads at once. As STIR numbers bins, tangential position t of view v joins the detectors v +
/// floor(t / 2) and v + half a ring - ceil(t / 2).
void write_stir_values(const std::filesystem::path& file, const config::Scanner& scanner,
                       const StirDetectors& detectors, const StirProjections& projections,
                       net::WorkerPool& pool,
                       const std::function<double(std::uint32_t a, std::uint32_t b)>& value);

}  // namespace petacq::petlm
