// The screen of `petctl watch`: the strip, rates with their recent past, health, and one table. Text only:
// terminal.hpp paints it and reads the keys.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

enum class KeyPress {
    other,
    quit,
    sources,
    modules,
    reverse,
    left,
    right,
    up,
    down,
    page_up,
    page_down,
    home,
    end
};

class Dashboard {
  public:
    Dashboard();
    void add(nlohmann::json status);
    /// The daemon does not answer: whether data are being recorded is unknown until the next status.
    void lose();
    void press(KeyPress key);
    /// Returns at most `height` lines. Lines longer than `width` columns are left for the terminal to cut.
    /// `unicode`: block characters may be used. `age_s`: age of the latest status;
    /// beyond answer_awaited it is lost. Begins with the strip.
    Lines draw(std::size_t width, std::size_t height, bool unicode, double age_s);
    /// For the title of the window.
    [[nodiscard]] std::string title() const;

  private:
    /// One of the two tables, and how it is shown.
    struct View {
        const char* title;
        const char* field;                     ///< of the status document
        std::optional<std::size_t> sorted_by;  ///< column; absent: in the order of the document
        bool reversed;
        std::size_t top;  ///< first row shown
    };

    [[nodiscard]] View& view() { return views_[modules_ ? 1 : 0]; }
    [[nodiscard]] Line head_line(double age_s) const;
    [[nodiscard]] Lines rate_lines(std::size_t width, std::size_t count, bool unicode) const;
    Lines table(std::size_t rows);

    std::shared_ptr<const nlohmann::json> status_;  ///< the latest
    std::deque<std::vector<double>> history_;       ///< values of every rate, the latest last; NaN: unknown
    std::array<View, 2> views_{View{"sources", "sources", {}, false, 0},
                               View{"BDMs", "modules", {}, false, 0}};
    bool modules_ = false;
    std::size_t page_ = 1;  ///< rows of the table in the last drawing
};

/// A row of bars between 0 and the largest value, the latest last; NaN becomes a blank.
std::string sparkline(const std::vector<double>& values, bool unicode);

}  // namespace petacq::petctl
