// The angles at which the lines of a scanner are taken: of one that stands still there is one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/records/scanner_angle.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

/// A turn is divided into equal parts, so many that a line at the edge of an image is out of place by at most
/// a quarter of a voxel. A part in which records could have been taken is an angle: the mean of those that
/// the scanner had in it. A *number* of a crystal is that of the crystal plus its angle times the number of
/// crystals (config::LineGeometry::turn_to), so that crystals at two angles are different ones. Thread-safe.
class Angles {
  public:
    /// Throws BadInput if the scanner turns and it is not known how, or when.
    Angles(const petlm::ExportSource& source, const config::Scanner& scanner, const Grid& grid);

    [[nodiscard]] bool turns() const { return angle_.has_value(); }
    /// [angle] radians from +x to +y; 0 of a scanner that stands still.
    [[nodiscard]] const std::vector<double>& radians() const { return radians_; }
    [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(radians_.size()); }
    /// Numbers of crystals.
    [[nodiscard]] std::uint32_t numbers() const { return crystals_ * count(); }

    /// Changes the crystals of coincidences to their numbers.
    void number(std::span<gpu::Coincidence> records) const;
    /// [angle] of the decays of this time whose pairs were found, the share at it, by petlm::found_decays().
    [[nodiscard]] std::vector<double> shares(const daemon::Coverage& coverage, double half_life_s,
                                             const std::vector<petlm::LiveTime>& live) const;

  private:
    [[nodiscard]] std::size_t part_of(double radians) const;
    [[nodiscard]] std::uint32_t angle_at(std::uint64_t time) const {
        return angle_of_part_[part_of(config::within_turn(angle_->at(time)))];
    }

    std::uint32_t crystals_;
    std::optional<petlm::ScannerAngle> angle_;
    std::vector<std::uint32_t> angle_of_part_;
    std::vector<double> radians_ = {0};
};

}  // namespace petacq::image
