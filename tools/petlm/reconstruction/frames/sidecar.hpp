// frames.json: the sidecar of BIDS-PET, and what petlm knows besides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/image/report.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"

namespace petacq::frames {

/// What became of a frame.
struct FrameReport {
    bool data = false;  ///< some arrived; otherwise the voxels have no value
    std::string why_none;
    std::uint64_t prompts = 0;
    double share_of_pairs = 1;  ///< of the pairs of crystals, that fitted into memory
    image::Report report;
    std::vector<std::string> sentences;
};

/// Keys that a user states: an object. Throws config::Error, and petlm::UsageError for a key that petlm
/// states itself.
nlohmann::json stated_keys(const std::optional<std::filesystem::path>& file);

/// `frames`: as many as the plan has. Required keys that neither petlm nor the user knows are "n/a";
/// "UnknownKeys" names them.
std::string sidecar_text(const image::Setup& setup, const FramePlan& plan,
                         const std::vector<FrameReport>& frames, const nlohmann::json& stated);

}  // namespace petacq::frames
