#include "tools/petlm/image/corrections.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace petacq::image {
namespace {

/// How many randoms each delayed stands for, on average over the run; none if run.json does not tell, or if
/// the records were made with other rules.
std::optional<double> weight_of_delayeds(const petlm::ExportSource& source) {
    const nlohmann::json& run = source.run();
    const auto number = [&](const char* pointer) {
        const nlohmann::json::json_pointer at(pointer);
        return run.contains(at) && run[at].is_number() ? run[at].get<double>() : 0;
    };
    const double delayeds = number("/ledger/pairs/delayeds_found");
    const double randoms = number("/expected_randoms/from_delayeds");
    const bool other_rules = source.description().contains("resorted") && !run.contains("resorted");
    if (other_rules || !(delayeds > 0) || !(randoms > 0)) return std::nullopt;
    return randoms / delayeds;
}

std::string sentence_about(const petlm::RunPileUp& pile_up) {
    if (std::isnan(pile_up.mean)) {
        return "Pile-up: not corrected, as no formula gives the pairs that this run lost to multiples: "
               "values are too small at high rates.";
    }
    if (pile_up.mean == 1) return "Pile-up: no pairs were lost to multiples.";
    std::string text = fmt::format(
        "Pile-up: values multiplied by {:.4g} for the pairs lost to multiples, the mean over the trues of "
        "each second",
        pile_up.mean);
    if (pile_up.most > 1.01 * pile_up.least) {
        text += fmt::format(
            "; by second it is {:.4g} to {:.4g}. If the distribution changed with it, seconds of a high rate "
            "count too little",
            pile_up.least, pile_up.most);
    }
    return text + ".";
}

}  // namespace

Corrections::Corrections(const petlm::ExportSource& source, const config::Scanner& scanner,
                         const RandomsByModules& delayeds) {
    std::string why;
    of_run_ = petlm::RunRandoms::of_run(source.target(), source.run(), scanner, why);
    if (of_run_) {
        use_seconds();
    } else {
        use_delayeds(source, delayeds, why);
    }
}

void Corrections::use_seconds() {
    randoms_ = [this](Pair pair) { return of_run_->sum(pair.a, pair.b); };
    randoms_sentence_ = fmt::format(
        "Randoms: {:.0f} expected from the singles of each second, by pair of crystals; added to what the "
        "image predicts.",
        of_run_->total());
    const petlm::RunPileUp& pile_up = of_run_->pile_up();
    if (!std::isnan(pile_up.mean)) pile_up_ = pile_up.mean;
    pile_up_sentence_ = sentence_about(pile_up);
}

void Corrections::use_delayeds(const petlm::ExportSource& source, const RandomsByModules& delayeds,
                               const std::string& why) {
    pile_up_sentence_ = "Pile-up: not corrected, as " + why + ".";
    if (delayeds.total() == 0) {
        randoms_sentence_ = std::string("Randoms: none subtracted, as there are no delayeds") +
                            (source.may_hold_delayeds() ? "" : "; the run did not search for them") +
                            ", and " + why + ".";
        return;
    }
    const auto weight = weight_of_delayeds(source);
    randoms_ = [factor = weight.value_or(1), &delayeds](Pair pair) {
        return factor * delayeds.expected(pair);
    };
    randoms_sentence_ =
        "Randoms: expected from the delayeds of each pair of modules, each of which stands for " +
        (weight ? fmt::format("{:.4g} randoms", *weight) : "1 random (its weight is unknown)") +
        "; added to what the image predicts. Not from the singles, as " + why + ".";
}

}  // namespace petacq::image
