// One image of records that have been counted, with all corrections of their own time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/image/counts.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"
#include "tools/petlm/reconstruction/image/report.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"

namespace petacq::image {

/// An image, and what stands beside it.
struct MadeImage {
    QuickLook look;
    Report report;
    std::vector<std::string> sentences;
    double scale = 1;  ///< by which the image was multiplied since EM
};

/// Images of the same records drawn anew (PairCounts::resampled), for the error of counting.
struct Replicates {
    std::uint32_t count = 0;
    /// Gets each image, and the scale of all of them (MadeImage).
    std::function<void(const QuickLook& replicate, double scale)> use;
};

/// The factors of the lines for an object on the bed of the part.
class PartLines {
  public:
    /// Throws as the check of a normalisation does.
    PartLines(const Setup& setup, const Part& part);
    [[nodiscard]] const corrections::LineFactors& factors() const { return factors_; }
    /// What of a normalisation could not be compared with the records.
    [[nodiscard]] const std::vector<std::string>& sentences() const { return sentences_; }

  private:
    corrections::LineFactors factors_;
    std::vector<std::string> sentences_;
};

/// The image of the records of `part`, of which `counts` are all. It depends on nothing else that the source
/// holds. Randoms, scatter and all factors of the
/// replicates are those of the image. `what`: for the progress, "image of run-7"; `max_memory`: bytes;
/// `sensitivity`: of another image of the same part and grid (QuickLook::sensitivity); empty: none. Throws
/// UsageError for too little memory.
MadeImage make_image(Setup& setup, const Part& part, const PartLines& lines, const ImageCounts& counts,
                     const std::string& what, std::uint64_t max_memory, const Replicates& replicates = {},
                     std::vector<float> sensitivity = {});

/// How images were made: grid, settings, memory, time.
std::vector<std::string> sentences_about_making(const Setup& setup, const Grid& grid,
                                                const std::vector<MadeImage>& images, double read_s);

}  // namespace petacq::image
