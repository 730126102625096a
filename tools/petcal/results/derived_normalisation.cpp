#include "tools/petcal/results/derived_normalisation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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
    return fmt::format(
        "                    few counts: {:.0f} % need {:.1f} times as many prompts, so measure "
        "longer\n",
        100 * enough_error, std::pow(error / enough_error, 2));
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

std::string figures_text(const config::Scanner& scanner, const DerivedNormalisation& d) {
    const auto& fit = d.fit;
    double live = 0;
    double squares = 0;
    for (std::size_t i = 0; i < d.normalisation.efficiency.size(); ++i) {
        if (!std::isfinite(fit.crystals.error[i]) || d.normalisation.efficiency[i] == 0) continue;
        ++live;
        squares += std::pow(d.normalisation.efficiency[i] - 1, 2);
    }
    const auto prompts = static_cast<double>(d.prompts);
    std::string text;
    text += fmt::format("prompts             {}, {:.1f} % on lines through the source\n", d.prompts,
                        100 * static_cast<double>(d.used) / prompts);
    text += fmt::format("randoms             {:.2f} % of these, from {}\n",
                        100 * d.randoms / static_cast<double>(d.used), d.randoms_from);
    text += fmt::format("scattered           {:.2f} % of these{}\n",
                        100 * d.scattered / static_cast<double>(d.used),
                        d.scattered > 0 ? ", by a simulation of photons in the source" : "");
    text += d.loss + "\n";
    if (!d.unknown.empty()) text += fmt::format("not told            {}\n", fmt::join(d.unknown, ", "));
    text += fmt::format("counts              {:.0f} per crystal (median, net), lowest {:.0f}\n",
                        fit.crystals.median_counts, fit.crystals.lowest_counts);
    text += fmt::format("efficiencies        spread {:.2f} %, error {:.2f} % (median, by counts)\n",
                        100 * std::sqrt(squares / std::max(1.0, live)), 100 * efficiency_error(d));
    text += advice_on_counts(efficiency_error(d));
    if (!d.geometric.empty()) text += fmt::format("geometric factors   {}\n", d.geometric);
    text += fmt::format("transaxial factors  {} of {} classes unseen, error {:.2f} % (median)\n",
                        fit.transaxial.unseen, fit.transaxial.all, 100 * fit.error_transaxial);
    text +=
        fmt::format("axial factors       {} of {} {} unseen, error {:.2f} % (median)\n", fit.axial.unseen,
                    fit.axial.all, scanner.is_ring() ? "pairs of rings" : "classes", 100 * fit.error_axial);
    text += fmt::format("fit                 chi-square {:.2f} by pair of {}, {:.2f} % rms beyond counts\n",
                        fit.chi_square, scanner.is_ring() ? "units" : "modules", 100 * fit.excess);
    constexpr double good_fit = 0.05;
    if (fit.excess > good_fit)
        text +=
            "                    the counts are not those of such a source: check --cylinder and the "
            "calibration\n";
    const auto percent = [&](std::size_t axis) {
        return config::without_minus_zero(100 * fit.one_sided[axis], 1);
    };
    text += fmt::format("one-sided           {:+.1f} % in x, {:+.1f} % in y, {:+.1f} % in z\n", percent(0),
                        percent(1), percent(2));
    constexpr double noticeable = 0.1;
    if (std::any_of(std::begin(fit.one_sided), std::end(fit.one_sided),
                    [](double value) { return std::abs(value) > noticeable; }))
        text += "                    check the place of the source\n";
    text += fmt::format("dead units          {}\n", d.dead.units.size());
    for (const std::uint32_t unit : d.dead.units)
        text += "  " + unit_name(scanner.geometry, unit) + "\n";
    text += fmt::format("other dead crystals {}\n", d.dead.crystals.size()) + first_lines(d.dead.crystals);
    return text + fmt::format("unseen crystals     {}\n", fit.crystals.unseen.size());
}

}  // namespace petacq::petcal
