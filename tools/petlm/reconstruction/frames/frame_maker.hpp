// Makes the frames of a series, one after the other, as their records have been read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/errors/spread.hpp"
#include "tools/petlm/reconstruction/frames/frame_report.hpp"
#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/image/counts.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::frames {

/// Not thread-safe.
class FrameMaker {
  public:
    /// Keeps all arguments. `bed`: of the whole source. `out` has the header of the series. Throws as
    /// PartLines and CombinedImage do.
    FrameMaker(image::Setup& setup, const FramePlan& plan, const std::vector<Region>& regions,
               const std::vector<image::Part>& bed, std::uint32_t replicates, petlm::OutputFile& out);

    /// The grid of all frames: with all positions of the bed.
    [[nodiscard]] const image::Grid& grid() const { return grid_; }
    void make_all();

    [[nodiscard]] const std::vector<FrameReport>& reports() const { return reports_; }
    /// [region][frame]; NaN: not known.
    [[nodiscard]] const std::vector<std::vector<double>>& means() const { return means_; }
    /// Likewise the standard errors, of counting.
    [[nodiscard]] const std::vector<std::vector<double>>& errors() const { return errors_; }
    /// About grid, settings, memory and time.
    [[nodiscard]] std::vector<std::string> sentences() const;

  private:
    /// The records of a frame that were taken at one position of the bed.
    struct FrameShare {
        std::size_t frame;
        std::size_t position;  // in bed_
        image::Part part;
    };
    /// A frame in the making.
    struct Open {
        FrameReport report;
        bool taken = false;                           // records, whether or not any arrived
        std::vector<float> values;                    // if the bed did not move
        std::optional<image::CombinedImage> bed;      // otherwise
        std::vector<std::vector<double>> replicates;  // likewise [replicate][voxel of in_regions_] weighted
        std::optional<image::Spread> spread;          // of the regions, among the replicates
    };

    [[nodiscard]] bool moved() const { return bed_.size() > 1; }
    void share_out();
    void share_memory(std::size_t open);
    image::ImageCounts& counts_of(std::size_t share);
    void complete(std::size_t share);
    void make_share(std::size_t share);
    void take(const image::Part& part, image::MadeImage made);
    void finish_frame(std::size_t frame);
    void combine();
    [[nodiscard]] std::vector<float> means_of(std::span<const float> image) const;

    image::Setup& setup_;
    const FramePlan& plan_;
    const std::vector<Region>& regions_;
    const std::vector<image::Part>& bed_;
    std::uint32_t replicates_;
    petlm::OutputFile& out_;
    image::Grid grid_;
    std::vector<image::PartLines> lines_;    // [position]
    std::vector<FrameShare> shares_;         // by frame; at least one each
    std::vector<std::uint32_t> in_regions_;  // voxels of any region, for replicates if the bed moved
    std::size_t open_ = 1;
    std::size_t capacity_ = 0;
    std::uint64_t memory_of_image_ = 0;
    std::vector<std::unique_ptr<image::ImageCounts>> counts_;  // [share] nullptr: none yet, or done
    Open now_;
    std::vector<image::MadeImage> made_;  // without their values
    std::vector<FrameReport> reports_;
    std::vector<std::vector<double>> means_;
    std::vector<std::vector<double>> errors_;
    double all_s_ = 0;
    double made_s_ = 0;
};

}  // namespace petacq::frames
