#include "tools/petctl/text/strip.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

struct Look {
    std::string_view state;
    const char* symbol;
    const char* ascii;
    Style style;
};
constexpr std::array looks{
    Look{"recording", "\u25CF", "*", Style::good},         Look{"not_recording", "\u25A0", "o", Style::title},
    Look{"waiting_for_data", "\u25CB", "-", Style::title}, Look{"no_data", "\u2715", "x", Style::bad},
    Look{"interrupted", "\u25B2", "!", Style::warning},    Look{"failed", "\u2715", "x", Style::bad}};
constexpr Look unknown{"", "?", "?", Style::plain};

const Look& look_of(const json& recording) {
    const std::string state = text_of(at(recording, {"state"}));
    const auto* const found =
        std::find_if(looks.begin(), looks.end(), [&](const Look& look) { return look.state == state; });
    return found == looks.end() ? unknown : *found;
}

/// The commands stand on lines of their own, to be copied.
std::vector<std::string> text_lines(const json& status, std::size_t width) {
    const json& recording = at(status, {"recording"});
    const json& command = at(recording, {"command"});
    if (!command.is_string()) return wrapped(text_of(at(recording, {"text"})), width);
    const std::string run = text_of(at(recording, {"run_id"}));
    const json& count = at(status, {"interrupted", "count"});
    const std::string others = count.is_number_integer() && count > 1
                                   ? " (and " + std::to_string(count.get<std::int64_t>() - 1) + " before it)"
                                   : "";
    std::vector<std::string> lines = wrapped(
        "run " + run + others + " ended without being stopped (a crash or a power cut). Save it:", width);
    lines.push_back("  " + text_of(command));
    lines.push_back("  petctl acknowledge " + run);
    return lines;
}

}  // namespace

Lines strip_lines(const json& status, const Display& display) {
    const json& recording = at(status, {"recording"});
    if (!recording.is_object()) return {};
    Span head = strip_mark(status, display.unicode);
    head.text += "  ";
    const std::size_t indent = width_of(head.text);
    Lines lines;
    for (std::string& text : text_lines(status, std::max<std::size_t>(display.width, indent + 20) - indent)) {
        if (lines.empty()) {
            lines.push_back({head, {std::move(text)}});
        } else {
            lines.push_back({{std::string(indent, ' ')}, {std::move(text)}});
        }
    }
    if (const json& note = at(recording, {"note"});
        note.is_string() && !note.get_ref<const std::string&>().empty())
        lines.push_back(
            clipped({{std::string(indent, ' ')}, {"note: " + text_of(note), Style::faint}}, display.width));
    return lines;
}

std::string strip_title(const json& status) {
    std::string title = strip_word(status).text;
    if (const json& run = at(status, {"recording", "run_id"}); run.is_string()) title += " " + text_of(run);
    return title + " - petacqd " + text_of(at(status, {"scanner"}));
}

json unanswered(json status) {
    status["recording"] = {
        {"state", "unknown"},
        {"word", "UNKNOWN"},
        {"text", "the daemon does not answer. Whether a run is being recorded is not known."}};
    return status;
}

Span strip_mark(const json& status, bool unicode) {
    const Look& look = look_of(at(status, {"recording"}));
    Span mark = strip_word(status);
    mark.text = std::string(unicode ? look.symbol : look.ascii) + " " + mark.text;
    return mark;
}

Span strip_word(const json& status) {
    const json& recording = at(status, {"recording"});
    return {text_of(at(recording, {"word"})), look_of(recording).style};
}

}  // namespace petacq::petctl
