#include "tools/petcal/results/derived_normalisation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/decimals.hpp"
#include "tools/petcal/base/text.hpp"
#include "tools/petcal/base/units.hpp"

namespace petacq::petcal {

namespace {

/// Crystals differ by about 10 %. Efficiencies with this error take nine tenths of that variance out of the
/// images; with an error of 10 % they would put in as much as they take out.
constexpr double enough_error = 0.03;

/// What the counts mean for the efficiencies, where they are few; else empty.
std::string advice_on_counts(double error) {
    if (error <= enough_error) return "";
    return fmt::format("few counts: {:.0f} % need {:.1f} times as many prompts, so measure longer",
                       100 * enough_error, std::pow(error / enough_error, 2));
}

/// What the fit means, where it is poor; else empty.
std::string advice_on_fit(const estimate::NormalisationFit& fit) {
    constexpr double good_fit = 0.05;
    if (fit.excess <= good_fit) return "";
    return "the counts are not those of such a source: check --cylinder and the calibration";
}

std::string advice_on_place(const estimate::NormalisationFit& fit) {
    constexpr double noticeable = 0.1;
    const bool one_sided = std::any_of(std::begin(fit.one_sided), std::end(fit.one_sided),
                                       [](double value) { return std::abs(value) > noticeable; });
    return one_sided ? "check the place of the source" : "";
}

/// A line below a figure.
std::string below(const std::string& advice) {
    return advice.empty() ? "" : "                    " + advice + '\n';
}

double percent(double part, double all) {
    return 100 * part / all;
}

/// Of the efficiencies of crystals that are alive, relative.
double spread_of_efficiencies(const DerivedNormalisation& d) {
    double live = 0;
    double squares = 0;
    for (std::size_t i = 0; i < d.normalisation.efficiency.size(); ++i) {
        if (!std::isfinite(d.fit.crystals.error[i]) || d.normalisation.efficiency[i] == 0) continue;
        ++live;
        squares += std::pow(d.normalisation.efficiency[i] - 1, 2);
    }
    return std::sqrt(squares / std::max(1.0, live));
}

}  // namespace

double efficiency_error(const DerivedNormalisation& d) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < d.normalisation.efficiency.size(); ++i) {
        const double error = d.fit.crystals.error[i];
        if (std::isfinite(error) && d.normalisation.efficiency[i] != 0) errors.push_back(error);
    }
    if (errors.empty()) return 0;
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    return *middle;
}

nlohmann::json figures_json(const DerivedNormalisation& d) {
    const auto& fit = d.fit;
    const auto prompts = static_cast<double>(d.prompts);
    const auto used = static_cast<double>(d.used);
    nlohmann::json messages = {d.loss};
    for (const std::string& advice :
         {advice_on_counts(efficiency_error(d)), advice_on_fit(fit), advice_on_place(fit)})
        if (!advice.empty()) messages.push_back(advice);
    return {{"prompts", d.prompts},
            {"through_source_percent", percent(used, prompts)},
            {"randoms_percent", percent(d.randoms, used)},
            {"randoms_from", d.randoms_from},
            {"scattered_percent", percent(d.scattered, used)},
            {"not_told", d.unknown},
            {"median_counts", fit.crystals.median_counts},
            {"lowest_counts", fit.crystals.lowest_counts},
            {"efficiency_spread_percent", 100 * spread_of_efficiencies(d)},
            {"efficiency_error_percent", 100 * efficiency_error(d)},
            {"geometric_factors", d.geometric},
            {"transaxial",
             {{"classes", fit.transaxial.all},
              {"unseen", fit.transaxial.unseen},
              {"error_percent", 100 * fit.error_transaxial}}},
            {"axial",
             {{"classes", fit.axial.all},
              {"unseen", fit.axial.unseen},
              {"error_percent", 100 * fit.error_axial}}},
            {"chi_square", fit.chi_square},
            {"beyond_counts_percent", 100 * fit.excess},
            {"one_sided_percent",
             {{"x", 100 * fit.one_sided[0]}, {"y", 100 * fit.one_sided[1]}, {"z", 100 * fit.one_sided[2]}}},
            {"dead_units", d.dead.units},
            {"other_dead_crystals", d.dead.crystals},
            {"unseen_crystals", fit.crystals.unseen},
            {"messages", std::move(messages)}};
}

std::string figures_text(const config::Scanner& scanner, const DerivedNormalisation& d) {
    const auto& fit = d.fit;
    const auto prompts = static_cast<double>(d.prompts);
    const auto used = static_cast<double>(d.used);
    std::string text;
    text += fmt::format("prompts             {}, {:.1f} % on lines through the source\n", d.prompts,
                        percent(used, prompts));
    text += fmt::format("randoms             {:.2f} % of these, from {}\n", percent(d.randoms, used),
                        d.randoms_from);
    text += fmt::format("scattered           {:.2f} % of these{}\n", percent(d.scattered, used),
                        d.scattered > 0 ? ", by a simulation of photons in the source" : "");
    text += d.loss + "\n";
    if (!d.unknown.empty()) text += fmt::format("not told            {}\n", fmt::join(d.unknown, ", "));
    text += fmt::format("counts              {:.0f} per crystal (median, net), lowest {:.0f}\n",
                        fit.crystals.median_counts, fit.crystals.lowest_counts);
    text += fmt::format("efficiencies        spread {:.2f} %, error {:.2f} % (median, by counts)\n",
                        100 * spread_of_efficiencies(d), 100 * efficiency_error(d));
    text += below(advice_on_counts(efficiency_error(d)));
    if (!d.geometric.empty()) text += fmt::format("geometric factors   {}\n", d.geometric);
    text += fmt::format("transaxial factors  {} of {} classes unseen, error {:.2f} % (median)\n",
                        fit.transaxial.unseen, fit.transaxial.all, 100 * fit.error_transaxial);
    text +=
        fmt::format("axial factors       {} of {} {} unseen, error {:.2f} % (median)\n", fit.axial.unseen,
                    fit.axial.all, scanner.is_ring() ? "pairs of rings" : "classes", 100 * fit.error_axial);
    text += fmt::format("fit                 chi-square {:.2f} by pair of {}, {:.2f} % rms beyond counts\n",
                        fit.chi_square, scanner.is_ring() ? "units" : "modules", 100 * fit.excess);
    text += below(advice_on_fit(fit));
    const auto of_axis = [&](std::size_t axis) {
        return config::without_minus_zero(100 * fit.one_sided[axis], 1);
    };
    text += fmt::format("one-sided           {:+.1f} % in x, {:+.1f} % in y, {:+.1f} % in z\n", of_axis(0),
                        of_axis(1), of_axis(2));
    text += below(advice_on_place(fit));
    text += fmt::format("dead units          {}\n", d.dead.units.size());
    for (const std::uint32_t unit : d.dead.units)
        text += "  " + unit_name(scanner.geometry, unit) + "\n";
    text += fmt::format("other dead crystals {}\n", d.dead.crystals.size()) + first_lines(d.dead.crystals);
    return text + fmt::format("unseen crystals     {}\n", fit.crystals.unseen.size());
}

}  // namespace petacq::petcal
