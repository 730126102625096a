// frames.json: the sidecar of BIDS-PET, and what petlm knows besides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/frames/frame_report.hpp"
#include "tools/petlm/reconstruction/frames/plan.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"

namespace petacq::frames {

/// Keys that a user states: an object. Throws config::Error, and petlm::UsageError for a key that petlm
/// states itself, and for a value that BIDS does not take.
nlohmann::json stated_keys(const std::optional<std::filesystem::path>& file);

/// `frames`: as many as the plan has. Required keys that neither petlm nor the user knows are "n/a", or left
/// out where BIDS takes no such value; "UnknownKeys" names them.
nlohmann::json sidecar(const image::Setup& setup, const FramePlan& plan,
                       const std::vector<FrameReport>& frames, const nlohmann::json& stated);
/// The required keys that it leaves out.
std::vector<std::string> missing_keys(const nlohmann::json& sidecar);

}  // namespace petacq::frames
