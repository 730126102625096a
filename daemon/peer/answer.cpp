#include "daemon/peer/answer.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/run/directory.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// Everything else is dropped while it is read: it may be large, and it comes from outside.
bool is_wanted(int depth, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::array_start) return false;
    if (event != json::parse_event_t::key) return true;
    const auto& key = value.get_ref<const std::string&>();
    return depth == 1 ? key == "run" || key == "recording" : depth == 2 && (key == "id" || key == "state");
}

bool is_word(const std::string& text) {
    constexpr std::size_t longest = 32;
    return !text.empty() && text.size() <= longest &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
}

std::string text_in(const json& document, const char* section, const char* key) {
    const json& object = document.at(section);
    return object.at(key).get<std::string>();
}

}  // namespace

PeerAnswer peer_failure(std::string why) {
    return {std::move(why), {}, {}};
}

PeerAnswer peer_answer_from(const std::string& status) {
    try {
        const json document = json::parse(status, is_wanted);
        PeerAnswer answer;
        answer.recording = text_in(document, "recording", "state");
        if (!document.at("run").is_null()) {
            answer.run = text_in(document, "run", "id");
            check_run_id(answer.run);
        }
        if (is_word(answer.recording)) return answer;
    } catch (const json::exception&) {  // handled below
    } catch (const RunDirectoryError&) {
    }
    return peer_failure("its answer is no status of petacqd");
}

}  // namespace petacq::daemon
