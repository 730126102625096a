// The pictures of a run (drawing, caption, numbers), their report, and shared helpers.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/sum.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petlm/plot/detector_findings.hpp"
#include "tools/petlm/plot/histograms.hpp"
#include "tools/petlm/plot/resolution.hpp"
#include "tools/petlm/plot/run_files.hpp"
#include "tools/petlm/plot/run_image.hpp"
#include "tools/petlm/plot/seconds_rows.hpp"
#include "tools/petlm/records/ledger_rows.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/axes.hpp"

namespace petacq::petlm {

using config::sum_of;
using daemon::grouped;
using report::Axis;
using report::bar_width;
using report::count_axis;
using report::legend_height;
using report::LegendEntry;
using report::Margins;
using report::Matrix;
using report::Pen;
using report::picture_width;
using report::Plot;
using report::Theme;

struct PictureData {
    config::Scanner scanner;
    config::DepthOfInteraction depth;  ///< for the sinogram
    PairBins bins;
    KindHistograms pairs;
    std::optional<Singles> singles;
    std::optional<config::Spectra> spectra;
    std::optional<Triples> triples;
    std::optional<LedgerRows> ledger;
    std::string ledger_trouble;  ///< LedgerOverTime::trouble
    std::optional<SecondsRows> seconds_rows;
    std::string seconds_trouble;  ///< SecondsOverTime::trouble
    std::optional<DetectorFindings> detector;
    std::vector<daemon::Mark> marks;  ///< what operators noted in the run
    std::uint64_t end_ticks = 0;      ///< end of the time axis, which starts with bins.times
    daemon::Coverage coverage;
    std::optional<RunImage> image = {};
    std::string why_no_image = {};
    Resolutions energy = {};
    Resolutions time = {};

    /// Delayeds were searched for, or nobody knows.
    [[nodiscard]] bool delayeds() const {
        return !coverage.rules.coincidence || coverage.rules.coincidence->delay_ticks;
    }
    /// Null: there is none, or it is not known.
    [[nodiscard]] const config::Energy* energy_window() const {
        return coverage.rules.energy && coverage.rules.energy->filter ? &*coverage.rules.energy : nullptr;
    }
    [[nodiscard]] double seconds(std::uint64_t ticks) const {
        return static_cast<double>(ticks) * scanner.tick_ps * 1e-12;
    }
};

struct Picture {
    std::string name;  ///< stem of its files
    std::string title;
    std::string caption;  ///< what the picture shows
    std::string alt;      ///< for readers who cannot see it
    double height = 0;    ///< tools/report/canvas.hpp
    report::Draw draw;
    std::function<void(OutputFile&)> csv;  ///< empty if the numbers are in a file of the run
};

/// The pictures for which there are data. They refer to `data`.
std::vector<Picture> pictures_of(const PictureData& data);

/// The report: one HTML page that contains all pictures and tables and loads nothing. `description`: that of
/// the list-mode file; `run`: run.json or null. Both are shown as text, whatever they contain. Throws as
/// report::svg_of does.
std::string report_of(const std::string& target, const nlohmann::json& description, const nlohmann::json& run,
                      const PictureData& data, const std::vector<Picture>& pictures);

/// The first page: what was measured, its counts and rates, the resolution, findings and the image (HTML).
std::string summary_of(const nlohmann::json& description, const nlohmann::json& run, const PictureData& data,
                       const std::vector<Picture>& pictures);
/// A picture with its title and caption, as HTML.
std::string figure_of(const Picture& picture);
/// Names and values, as HTML; nothing without rows. `numbers`: the values are aligned as such.
std::string table_of(const std::string& caption, const std::vector<std::pair<std::string, std::string>>& rows,
                     bool numbers);
/// A JSON value as text; empty for null.
std::string text_of(const nlohmann::json& value);
/// A value of a JSON object as text; empty if it is missing or null.
std::string text_at(const nlohmann::json& object, const char* pointer);

inline constexpr double histogram_height = 360;  ///< of a picture of one histogram
// pictures_spectra.cpp
Picture energy_of_singles(const PictureData& data);
Picture energy_of_pairs(const PictureData& data);
Picture time_differences(const PictureData& data);
// pictures_image.cpp
Picture cuts_of_image(const PictureData& data);
// pictures_resolution.cpp
Resolutions energy_resolution_of(const PictureData& data);
Resolutions time_resolution_of(const PictureData& data);
bool resolution_by_module_known(const PictureData& data);
Picture resolution_of_modules(const PictureData& data);
// pictures_gammas.cpp: of a run with triples
Picture lifetimes(const PictureData& data);
Picture energy_of_gammas(const PictureData& data);
// pictures_time.cpp
Picture rates_over_time(const PictureData& data);
Picture loss_over_time(const PictureData& data);
inline constexpr double panel = 235;                           ///< height of one of several plots over time
inline constexpr Margins panel_margins = {84, legend_height};  ///< equal, so that the panels align
/// The axis of detector time, and the place of ticks on it.
Axis time_axis(const PictureData& data);
double time_at(const PictureData& data, std::uint64_t ticks);
// pictures_seconds.cpp
Picture corrections_over_time(const PictureData& data);
bool temperatures_known(const SecondsRows& rows);
Picture temperature_over_time(const PictureData& data);
// pictures_phase.cpp
Picture counts_by_phase(const PictureData& data, std::size_t number);
/// Of each cycle in PairBins::phases: "phase-3" for channel 3.
std::string name_of_phases(unsigned channel);
// pictures_maps.cpp
Picture crystal_map(const PictureData& data);
Picture michelogram(const PictureData& data);
Picture sinogram(const PictureData& data);
Picture axial_profile(const PictureData& data);
/// The value of the brightest colour: the largest count, unless a few cells, such as noisy crystals, stand
/// out so far that nothing else would be visible.
double max_of(const Matrix& matrix);
/// Makes the picture a map with a colour bar for what is counted.
void show_map(Picture& p, const Matrix& whole, const Axis& x, const Axis& y, const std::string& counted);
// pictures_frames.cpp: of a run with spectra
Picture flood_maps(const PictureData& data);
Picture energy_of_modules(const PictureData& data);

inline std::vector<double> doubles(const Counts& counts) {
    return {counts.begin(), counts.end()};
}

/// Prompts minus delayeds.
inline std::vector<double> net(const Counts& prompts, const Counts& delayeds) {
    std::vector<double> out;
    out.reserve(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i)
        out.push_back(static_cast<double>(prompts[i]) - static_cast<double>(delayeds[i]));
    return out;
}

template <class... Arguments>
void print(OutputFile& out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out.text(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace petacq::petlm
