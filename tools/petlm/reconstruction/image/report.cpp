#include "tools/petlm/reconstruction/image/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace petacq::image {

std::vector<std::string> Report::sentences() const {
    std::vector<std::string> out;
    for (const Correction& correction : list) {
        const std::string_view name = correction.name;
        if (!asked && name != "randoms" && name != "pile-up" && name != "loss") continue;
        out.push_back(correction.sentence);
    }
    return out;
}

std::vector<std::string> Report::names(bool made) const {
    std::vector<std::string> out;
    for (const Correction& correction : list)
        if (correction.made == made) out.emplace_back(correction.name);
    return out;
}

std::string Report::warning() const {
    if (!asked) return "For looking, not for quantification: no attenuation, scatter or normalisation.";
    const auto missing = names(false);
    std::string text = fmt::format("Corrected for {}.", fmt::join(names(true), ", "));
    if (!missing.empty()) text += fmt::format(" Not for {}.", fmt::join(missing, ", "));
    return text;
}

std::string Report::short_warning() const {
    if (!asked) return "petlm image: for looking, not quantification (no AC, SC, normalisation)";
    const auto missing = names(false);
    if (missing.empty()) return "petlm image: " + quantity.unit + ", all corrections made (image.json)";
    return fmt::format("petlm image: {}, no {}{}", quantity.unit, fmt::join(missing, ", "),
                       missing.back() == "loss" ? " correction" : "");
}

}  // namespace petacq::image
