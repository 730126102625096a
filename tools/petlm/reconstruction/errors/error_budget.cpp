#include "tools/petlm/reconstruction/errors/error_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace petacq::image {
namespace {

ErrorShare counting(const ErrorCauses& c, double trues) {
    if (!(trues > 0)) return {"counting", std::nullopt, "there are no true pairs"};
    const double of_used = std::sqrt(c.prompts) / (trues * c.share);
    return {"counting", of_used,
            fmt::format("{:.0f} prompts, of which {:.0f} are true pairs", c.prompts, trues * c.share)};
}

ErrorShare normalisation(const ErrorCauses& c) {
    constexpr const char* name = "normalisation";
    if (!c.normalised) return {name, std::nullopt, "no normalisation was named"};
    if (!c.efficiency_error || !(c.crystals > 0))
        return {name, std::nullopt, "the normalisation does not state its error"};
    // A pair has the efficiencies of two crystals.
    return {name, 2 * *c.efficiency_error / std::sqrt(c.crystals),
            fmt::format("an efficiency is known within {:.2g} %, by its counts; {:.0f} crystals are alive",
                        100 * *c.efficiency_error, c.crystals)};
}

ErrorShare scatter(const ErrorCauses& c, double trues) {
    constexpr const char* name = "scatter";
    if (!(c.scatter > 0)) return {name, std::nullopt, "scatter was not corrected"};
    if (!c.scatter_error || !(trues > 0))
        return {name, std::nullopt, "the records do not tell how right the simulation is"};
    return {name, *c.scatter_error * c.scatter / trues,
            fmt::format("{:.0f} scattered pairs, known within {:.2g} %", c.scatter, 100 * *c.scatter_error)};
}

ErrorShare randoms(const ErrorCauses& c, double trues) {
    constexpr const char* name = "randoms";
    if (!(trues > 0)) return {name, std::nullopt, "there are no true pairs"};
    const double relative = c.delayeds > 0 ? 1 / std::sqrt(c.delayeds) : error_of_expected_randoms;
    return {name, relative * c.randoms / trues,
            fmt::format("{:.0f} randoms, known within {:.2g} % ({})", c.randoms, 100 * relative,
                        c.delayeds > 0 ? "counts of delayeds" : "simulations")};
}

ErrorShare dead_time(const ErrorCauses& c) {
    constexpr const char* name = "dead time";
    if (c.dead_time == 1) return {name, 0.0, "no dead time was reported"};
    return {name, std::nullopt, "how right the reports of the boards are is not known"};
}

ErrorShare calibration(const ErrorCauses& c) {
    constexpr const char* name = "calibration";
    if (!c.calibrated) return {name, std::nullopt, "there is no activity factor"};
    if (!c.activity_error) return {name, std::nullopt, "the normalisation does not state that of its factor"};
    return {name, c.activity_error,
            fmt::format("the activity factor is known within {:.2g} %", 100 * *c.activity_error)};
}

}  // namespace

ErrorCauses together(const ErrorCauses& a, const ErrorCauses& b) {
    ErrorCauses out = a;
    out.prompts += b.prompts;
    out.share = std::min(a.share, b.share);
    out.randoms += b.randoms;
    out.delayeds += b.delayeds;
    out.scatter += b.scatter;
    out.scatter_error.reset();
    if (a.scatter_error && b.scatter_error) out.scatter_error = std::max(*a.scatter_error, *b.scatter_error);
    out.dead_time = std::max(a.dead_time, b.dead_time);
    return out;
}

std::vector<ErrorShare> error_budget(const ErrorCauses& c) {
    const double trues = c.prompts / c.share - c.randoms - c.scatter;
    return {counting(c, trues), normalisation(c), scatter(c, trues),
            randoms(c, trues),  dead_time(c),     calibration(c)};
}

double total_error(const std::vector<ErrorShare>& shares) {
    double squares = 0;
    for (const ErrorShare& share : shares)
        squares += share.relative ? *share.relative * *share.relative : 0;
    return std::sqrt(squares);
}

}  // namespace petacq::image
