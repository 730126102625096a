#include "tools/petctl/text/dashboard.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "tools/petctl/text/status_tables.hpp"
#include "tools/petctl/text/strip.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

constexpr std::size_t max_history = 600;
constexpr std::size_t min_rows = 4;  // in the table
constexpr double stale_s = 3;
constexpr std::size_t reason_indent = 6;  // of further lines
constexpr std::size_t fact_indent = 20;
// Width of the columns before the sparkline: label, last second, average.
constexpr std::size_t figures_width = 48;

std::span<const Column> columns_of(bool modules) {
    return modules ? module_columns() : source_columns();
}

void append(Lines& lines, Lines more, std::size_t most) {
    for (std::size_t i = 0; i < std::min(more.size(), most); ++i)
        lines.push_back(std::move(more[i]));
}

/// Sorts null last in either direction.
void sort_by(json& rows, const char* field, bool reversed) {
    std::stable_sort(rows.begin(), rows.end(), [&](const json& a, const json& b) {
        const json& x = at(a, {field});
        const json& y = at(b, {field});
        if (x.is_null() || y.is_null()) return !x.is_null();
        return reversed ? y < x : x < y;
    });
}

}  // namespace

std::string sparkline(const std::vector<double>& values, bool unicode) {
    constexpr std::array<const char*, 8> blocks{"\u2581", "\u2582", "\u2583", "\u2584",
                                                "\u2585", "\u2586", "\u2587", "\u2588"};
    constexpr std::array<const char*, 8> letters{"_", ".", ":", "-", "=", "+", "*", "#"};
    double largest = 0;
    for (const double value : values)
        largest = std::isfinite(value) ? std::max(largest, value) : largest;
    std::string text;
    for (const double value : values) {
        if (!std::isfinite(value)) {
            text += ' ';
            continue;
        }
        const double share = largest > 0 ? std::clamp(value / largest, 0.0, 1.0) : 0;
        const auto level = static_cast<std::size_t>(std::lround(7 * share));
        text += (unicode ? blocks : letters).at(level);
    }
    return text;
}

Dashboard::Dashboard() : status_(std::make_shared<const json>()) {}

void Dashboard::add(json status) {
    status_ = std::make_shared<const json>(std::move(status));
    std::vector<double> values;
    for (const Rate& rate : rates()) {
        const json& value = at(*status_, {"rates", rate.field});
        values.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
    history_.push_back(std::move(values));
    if (history_.size() > max_history) history_.pop_front();
}

void Dashboard::lose() {
    status_ = std::make_shared<const json>(unanswered(*status_));
}

void Dashboard::press(KeyPress key) {
    View& v = view();
    const std::size_t columns = columns_of(modules_).size();
    if (key == KeyPress::sources) modules_ = false;
    if (key == KeyPress::modules) modules_ = true;
    if (key == KeyPress::reverse) v.reversed = !v.reversed;
    if (key == KeyPress::left) v.sorted_by = v.sorted_by.value_or(0) == 0 ? columns - 1 : *v.sorted_by - 1;
    if (key == KeyPress::right) v.sorted_by = v.sorted_by ? (*v.sorted_by + 1) % columns : 0;
    if (key == KeyPress::up) v.top -= std::min<std::size_t>(v.top, 1);
    if (key == KeyPress::down) ++v.top;
    if (key == KeyPress::page_up) v.top -= std::min(v.top, page_);
    if (key == KeyPress::page_down) v.top += page_;
    if (key == KeyPress::home) v.top = 0;
    if (key == KeyPress::end) v.top = std::numeric_limits<std::size_t>::max() / 2;
}

Line Dashboard::head_line(double age_s) const {
    const json& health = at(*status_, {"health", "state"});
    Line line{{fmt::format("petacqd {}  {}  ", text_of(at(*status_, {"version"})),
                           text_of(at(*status_, {"scanner"}))),
               Style::title},
              {fmt::format("{}  run {}  up {}  health ", text_of(at(*status_, {"state"})),
                           text_of(at(*status_, {"run", "id"})), duration(at(*status_, {"uptime_s"})))},
              {text_of(health), health_style(health)}};
    if (age_s > stale_s) line.push_back({fmt::format("  no status for {:.0f} s", age_s), Style::bad});
    return line;
}

Lines Dashboard::rate_lines(std::size_t width, std::size_t count, bool unicode) const {
    const std::size_t points = width > figures_width ? std::min(width - figures_width, history_.size()) : 0;
    Lines lines;
    for (std::size_t i = 0; i < rates().size(); ++i) {
        const Rate& rate = rates()[i];
        if (rate.rank > count) continue;
        std::vector<double> recent;
        for (std::size_t k = history_.size() - points; k < history_.size(); ++k)
            recent.push_back(history_[k][i]);
        lines.push_back(
            {{fmt::format("  {:<16}  ", rate.label)},
             {fmt::format("{:>12}", rate.text(at(*status_, {"rates", rate.field}))), Style::title},
             {fmt::format("  {:>12}  ", rate.text(at(*status_, {"average", rate.field}))), Style::faint},
             {sparkline(recent, unicode), Style::good}});
    }
    return lines;
}

Lines Dashboard::table(std::size_t rows) {
    View& v = view();
    const std::span<const Column> columns = columns_of(modules_);
    json array = at(*status_, {v.field});
    if (!array.is_array()) array = json::array();
    const std::size_t shown = rows > 2 ? rows - 2 : 0;
    v.top = std::min(v.top, array.size() > shown ? array.size() - shown : 0);
    page_ = std::max<std::size_t>(shown, 1);
    if (v.sorted_by) sort_by(array, columns[*v.sorted_by].field, v.reversed);

    const std::size_t last = std::min(array.size(), v.top + shown);
    std::string title =
        fmt::format("{} {} to {} of {}", v.title, std::min(v.top + 1, last), last, array.size());
    if (v.sorted_by) {
        title += fmt::format(", by {}{}", columns[*v.sorted_by].heading, v.reversed ? ", largest first" : "");
    }
    Lines lines{{{title, Style::title}}};
    Lines all = table_lines(object_table(array, columns, v.sorted_by.value_or(columns.size())));
    lines.push_back(std::move(all.front()));
    for (std::size_t i = v.top; i < last; ++i)
        lines.push_back(std::move(all[i + 1]));
    return lines;
}

std::string Dashboard::title() const {
    return strip_title(*status_);
}

Lines Dashboard::draw(std::size_t width, std::size_t height, bool unicode, double age_s) {
    if (age_s > std::chrono::duration<double>(answer_awaited).count()) lose();
    Lines lines = strip_lines(*status_, {std::max<std::size_t>(width, 40), unicode});
    lines.push_back(head_line(age_s));
    const Lines reasons = reason_lines(at(*status_, {"health"}));
    const std::size_t full = lines.size() + height / 6;
    std::size_t shown = 0;
    for (; shown < reasons.size() && lines.size() < full; ++shown)
        append(lines, wrapped(reasons[shown], width, reason_indent), height);
    if (shown < reasons.size())
        lines.push_back({{fmt::format("    and {} more", reasons.size() - shown), Style::warning}});
    Lines facts;
    for (const Line& fact : fact_lines(*status_))
        append(facts, wrapped(fact, width, fact_indent), height);
    // Rates come first, then the table; the other facts appear only if the table keeps a minimum size.
    const std::size_t taken = lines.size() + std::max(min_rows, height / 3) + 1;
    append(lines, rate_lines(width, height > taken ? height - taken : 0, unicode), height);
    if (height > lines.size() + facts.size() + 2 * min_rows) append(lines, facts, facts.size());
    if (height > lines.size() + 1) append(lines, table(height - lines.size() - 1), height);
    lines.resize(std::min(lines.size(), height > 0 ? height - 1 : 0));
    while (lines.size() + 1 < height)
        lines.emplace_back();
    lines.push_back(
        {{"q quit  s sources  m BDMs  left/right sort by  r reverse  up/down/page scroll", Style::faint}});
    return lines;
}

}  // namespace petacq::petctl
