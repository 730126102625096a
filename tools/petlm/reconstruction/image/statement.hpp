// What stands beside an image: README.txt for people, image.json for programs, the captions of pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/reconstruction/image/pictures.hpp"
#include "tools/petlm/reconstruction/image/report.hpp"
#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::image {

/// How the image was made, for image.json.
struct Method {
    std::string scanner;  ///< its name
    std::uint32_t iterations = 0;
    std::uint32_t subsets = 0;
    double smooth_mm = 0;  ///< FWHM; 0: not smoothed
    std::optional<daemon::StatedActivity> nuclide;
};

struct Statement {
    const std::filesystem::path& target;
    const daemon::Coverage& coverage;
    const Grid& grid;
    const TofBins& tof;
    std::optional<double> psf_mm;
    Method method;
    std::vector<PositionReport> parts;      ///< at least one; several if the bed moved
    const std::vector<std::string>& lines;  ///< sentences about input, settings and corrections
    bool pictures;
    std::uint32_t replicates = 0;  ///< of the uncertainty; 0: there is none
};

/// Of each correction by its name: whether it was made, the sentence, and its figures.
nlohmann::json corrections_json(const Report& report);
/// Of each position: where it was, how long, and its corrections.
nlohmann::json positions_json(const std::vector<PositionReport>& positions);
/// That of the only part, or what holds for all of them. `coverage`: of all together.
Report report_of_all(const std::vector<PositionReport>& parts, const daemon::Coverage& coverage);
PictureTexts picture_texts(const Report& report);
std::string readme(const Statement& statement);
/// docs/how-to/image.md describes its members.
std::string json_text(const Statement& statement);

}  // namespace petacq::image
