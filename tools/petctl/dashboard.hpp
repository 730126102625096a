// What `petctl watch` shows: rates with their recent past, health, and one table. Text only; painting it and
// reading the keys is the terminal's business.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/text.hpp"

namespace petacq::petctl {

enum class Key {
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
    void add(nlohmann::json status);
    void press(Key key);
    /// At most `height` lines; what is longer than `width` columns is for the terminal to cut. `unicode`:
    /// block characters may be used. `age_s`: of the latest status.
    Lines draw(std::size_t width, std::size_t height, bool unicode, double age_s);

  private:
    /// One of the two tables, and how it is looked at.
    struct View {
        const char* name;                      ///< and field of the status document
        std::optional<std::size_t> sorted_by;  ///< column; absent: in the order of the document
        bool reversed;
        std::size_t top;  ///< first row shown
    };

    [[nodiscard]] View& view() { return views_[modules_ ? 1 : 0]; }
    [[nodiscard]] Line head_line(double age_s) const;
    [[nodiscard]] Lines rate_lines(std::size_t width, std::size_t count, bool unicode) const;
    Lines table(std::size_t rows);

    nlohmann::json status_;
    std::deque<std::vector<double>> history_;  ///< of every rate, the latest last; NaN: not known
    std::array<View, 2> views_{View{"sources", {}, false, 0}, View{"modules", {}, false, 0}};
    bool modules_ = false;
    std::size_t page_ = 1;  ///< rows of the table shown last time
};

/// Values as a row of bars between 0 and the largest of them, the latest last; a blank for NaN.
std::string sparkline(const std::vector<double>& values, bool unicode);

}  // namespace petacq::petctl
