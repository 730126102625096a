// Whether frames and energies are plausible.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/median.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

/// Without a calibration the photopeak is anywhere.
constexpr double lowest_peak_keV = 511 * 0.85;   // NOLINT(readability-identifier-naming): the unit's spelling
constexpr double highest_peak_keV = 511 * 1.15;  // NOLINT(readability-identifier-naming)
/// A deviation beyond these is no matter of calibration.
constexpr double much_off = 1.3;
constexpr double half = 0.5;

}  // namespace

void judge_frames(const Evidence& evidence, Diagnosis& diagnosis) {
    const double frames = evidence.gained("frames", "received");
    // `tolerable`: the largest share that a scanner can be run with.
    const auto complain = [&](const char* counter, double tolerable, const char* what, const char* fix) {
        const double share = frames > 0 ? evidence.gained("frames", counter) / frames : 0;
        if (share <= much) return;
        diagnosis.add(share > tolerable ? Level::problem : Level::warning, "frames",
                      fmt::format("{:.3g} % {}", 100 * share, what), fix);
    };
    complain("bad_marker", half, "have wrong markers",
             "frame.head_marker, frame.tail_marker; corrupted data");
    // No board sends one by chance: the description is wrong, or the number in a board.
    complain("bad_address", much, "have a BDM, DU, x or y out of range, or a BDM of another source",
             "geometry and sources of the scanner description; the numbers in the boards");
    complain("time_jump", half, "have times far from those of their source",
             "clock and common reset of the boards");
    complain("late", half, "come too late to be paired",
             "reset all boards together; watermark.max_disorder_us");
    complain("outside_crystal", half, "lie outside every crystal",
             "the position table of the calibration: petcal derive crystals");
}

void judge_energies(const Evidence& evidence, Diagnosis& diagnosis) {
    std::vector<double> peaks;
    for (const json& module : list(evidence.after, {"modules"})) {
        const json& peak = at(module, {"peak_keV"});
        if (number(at(module, {"singles_per_s"})) > 0 && peak.is_number()) peaks.push_back(peak);
    }
    if (peaks.empty()) return;
    const auto in_peak = [](double peak) { return peak >= lowest_peak_keV && peak <= highest_peak_keV; };
    const auto good = static_cast<std::size_t>(std::count_if(peaks.begin(), peaks.end(), in_peak));
    if (good == peaks.size()) {
        diagnosis.add(
            Level::good, "energies",
            good == 1 ? "the fullest energy of the only BDM with singles is near 511 keV"
                      : fmt::format("the fullest energy of all {} BDMs with singles is near 511 keV", good));
        return;
    }
    const double found = config::median(peaks);
    const bool far = found < lowest_peak_keV / much_off || found > highest_peak_keV * much_off;
    diagnosis.add(
        far ? Level::problem : Level::warning, "energies",
        fmt::format("the fullest energy of {} of {} BDMs is not near 511 keV (in the middle {:.0f} keV{})",
                    peaks.size() - good, peaks.size(), found,
                    far ? fmt::format(", {:.2g} times 511", found / 511) : ""),
        far ? "the gain of the boards, or the energy calibration of another gain (petcal derive energy); "
              "without "
              "a positron source in view, this means nothing"
            : "is there a positron source? Then the energy calibration: petcal derive energy");
}

void judge_health(const Evidence& evidence, Diagnosis& diagnosis) {
    struct Reason {
        const char* code;
        const char* subject;
        Level level;
    };
    constexpr std::array told{Reason{"multicast_not_joined", "arriving", Level::problem},
                              Reason{"boards_out_of_step", "synchrony", Level::problem},
                              Reason{"boards_without_partners", "synchrony", Level::problem},
                              Reason{"source_leading", "times", Level::problem},
                              Reason{"source_lagging", "times", Level::problem},
                              Reason{"source_stepped_back", "times", Level::warning},
                              Reason{"sources_behind", "times", Level::problem},
                              Reason{"board_lost_data", "loss", Level::problem},
                              Reason{"too_many_sources", "from", Level::problem},
                              Reason{"temperature_high", "modules", Level::warning},
                              Reason{"detector_unit_silent", "modules", Level::warning},
                              Reason{"detector_noisy", "modules", Level::warning}};
    for (const json& reason : list(evidence.after, {"health", "reasons"})) {
        const auto* const known = std::find_if(told.begin(), told.end(), [&](const Reason& one) {
            return text_of(at(reason, {"code"})) == one.code;
        });
        if (known != told.end())
            diagnosis.add(known->level, known->subject, text_of(at(reason, {"message"})));
    }
}

}  // namespace petacq::petctl
