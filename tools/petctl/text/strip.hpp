// The strip with which `status` and `watch` begin: are data being recorded now?
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// How wide text is shown, and whether symbols besides ASCII may be used.
struct Display {
    std::size_t width = 80;
    bool unicode = false;
};

/// Symbol, word and text of the object `recording`, the text in lines of `display.width` columns, and the
/// note of the run; for an interrupted run also the commands, each on a line of its own. Empty if the status
/// does not tell.
Lines strip_lines(const nlohmann::json& status, const Display& display);
/// Word, run and scanner, for the title of a window: "RECORDING night-3 - petacqd small".
std::string strip_title(const nlohmann::json& status);
/// The daemon tells its status every second; after this time without one it counts as not answering.
constexpr std::chrono::seconds answer_awaited{10};
/// The same status with the recording UNKNOWN, to be shown while the daemon does not answer.
nlohmann::json unanswered(nlohmann::json status);
/// The word in its colour, without a symbol; "-" if the status does not tell.
Span strip_word(const nlohmann::json& status);
/// Symbol and word.
Span strip_mark(const nlohmann::json& status, bool unicode);

}  // namespace petacq::petctl
