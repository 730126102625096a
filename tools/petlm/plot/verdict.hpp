// What somebody wants to know of a run first: is it whole, and can it be trusted?
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {

struct Judgement {
    bool good = false;
    std::string text;  ///< a sentence
};

/// The end of the run, its ledger, lost datagrams, and faults of the detector, as far as they are known.
/// `run`: run.json or null; it may contain anything.
std::vector<Judgement> verdict_of(const nlohmann::json& run, const PictureData& data);

}  // namespace petacq::petlm
