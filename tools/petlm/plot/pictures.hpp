// The pictures of a run: what is drawn, what is said of it, and the numbers behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petlm/export_output.hpp"
#include "tools/petlm/plot/canvas.hpp"
#include "tools/petlm/plot/histograms.hpp"
#include "tools/petlm/plot/run_files.hpp"

namespace petacq::petlm {

struct PictureData {
    config::Scanner scanner;
    double depth_mm = 0;  ///< of interaction, as the sinogram takes it
    PairBins bins;
    KindHistograms pairs;
    std::optional<Singles> singles;
    std::optional<LedgerRows> ledger;
    std::string ledger_trouble;   ///< LedgerOverTime
    std::uint64_t end_ticks = 0;  ///< of the time axis, which begins with bins.times
    bool delayeds = false;        ///< were looked for
    bool window_known = false;    ///< bins.differences spans the coincidence window
    std::optional<std::pair<double, double>> energy_window;  ///< keV

    [[nodiscard]] double seconds(std::uint64_t ticks) const {
        return static_cast<double>(ticks) * scanner.tick_ps * 1e-12;
    }
};

struct Picture {
    std::string name;  ///< of its files
    std::string title;
    std::string caption;  ///< what is shown, and of what
    std::string alt;      ///< for those who do not see it
    double height = 0;    ///< canvas.hpp
    Draw draw;
    std::function<void(OutputFile&)> csv;  ///< empty: the numbers are in a file of the run
};

/// Those for which there are data. They refer to `data`.
std::vector<Picture> pictures_of(const PictureData& data);

}  // namespace petacq::petlm
