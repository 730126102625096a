#include "tools/petlm/reconstruction/em/tof_choice.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/base/constants.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::image {
namespace {

constexpr double most_ps = 1e6;

double resolution_from(const std::string& asked) {
    double ps = 0;
    const char* const end = asked.data() + asked.size();
    const auto [next, error] = std::from_chars(asked.data(), end, ps);
    if (error != std::errc() || next != end || !(ps > 0 && ps <= most_ps)) {
        throw petlm::UsageError("--tof: expected auto, off, or a resolution of more than 0 and at most " +
                                fmt::format("{:g}", most_ps) + " ps, found '" + asked + "'");
    }
    return ps;
}

/// As petacqd writes it into run.json; absent: not stated.
std::optional<double> stated_resolution(const nlohmann::json& run) {
    if (!run.is_object()) return std::nullopt;
    const auto stated = run.value("coincidence_fwhm_ps", nlohmann::json());
    if (!stated.is_number()) return std::nullopt;
    const double ps = stated.get<double>();
    return ps > 0 && ps <= most_ps ? std::optional(ps) : std::nullopt;
}

}  // namespace

TofChoice choose_tof(const std::string& asked, const petlm::ExportSource& source,
                     const config::Scanner& scanner, double width_mm) {
    if (asked == "off") return {{}, "Time of flight: not used, as asked for (--tof off)."};
    const bool automatic = asked == "auto";
    const std::optional<double> fwhm_ps =
        automatic ? stated_resolution(source.run()) : resolution_from(asked);
    if (!daemon::tells(source.coverage(), daemon::unknown_dt)) {
        const auto why = fmt::format("{} does not tell {}", source.target().string(), daemon::unknown_dt);
        if (!automatic) throw petlm::UsageError(fmt::format("--tof: {}; expected auto or off", why));
        return {{}, fmt::format("Time of flight: not used, as {}.", why)};
    }
    if (!fwhm_ps) {
        return {{},
                "Time of flight: not used, as the run states no resolution of its calibration (petcal derive "
                "time measures it; --tof gives it)."};
    }
    const double fwhm_mm = config::light_mm_per_ps * *fwhm_ps / 2;
    if (automatic && !(fwhm_mm < width_mm)) {
        return {{},
                fmt::format("Time of flight: not used, as its resolution, {:.4g} ps or {:.3g} mm along a "
                            "line, tells nothing about an object of {:.3g} mm.",
                            *fwhm_ps, fwhm_mm, width_mm)};
    }
    const auto& rules = source.coverage().rules.coincidence;
    if (!rules) {
        const char* const why = "the coincidence window of the records is not known";
        if (!automatic) throw petlm::UsageError(fmt::format("--tof: {}; expected auto or off", why));
        return {{}, fmt::format("Time of flight: not used, as {}.", why)};
    }
    return {
        TofBins::of(*fwhm_ps, scanner.tick_ps, rules->window_ticks),
        fmt::format("Time of flight: used, with a resolution of {:.4g} ps (FWHM), {:.3g} mm along a line.",
                    *fwhm_ps, fwhm_mm)};
}

}  // namespace petacq::image
