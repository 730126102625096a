#include "tools/petlm/corrections/measured_time.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace petacq::corrections {
namespace {

std::optional<double> number(const nlohmann::json& from, const char* pointer) {
    const nlohmann::json::json_pointer at(pointer);
    if (!from.contains(at) || !from[at].is_number()) return std::nullopt;
    return from[at].get<double>();
}

double measured_ticks(const petlm::ExportSource& source) {
    const nlohmann::json& description = source.description();
    const auto start = number(source.run(), "/start_ticks");
    const auto stop = number(source.run(), "/stop_ticks");
    if (const auto live = number(description, "/gate/live_ticks")) return *live;
    if (const auto open = number(description, "/cut/open_ticks")) return *open;
    if (description.contains("cut")) {
        const auto from = number(description, "/cut/from_ticks");
        const auto to = number(description, "/cut/to_ticks");
        if (description["cut"].contains("gate") || !from || !to || !start || !stop) return 0;
        return std::max(0.0, std::min(*to, *stop) - std::max(*from, *start));
    }
    if (!std::filesystem::is_directory(source.target())) return 0;
    return start ? static_cast<double>(source.time_end() - source.time_origin()) : 0;
}

}  // namespace

MeasuredTime measured_time(const petlm::ExportSource& source, double tick_ps) {
    MeasuredTime out;
    out.seconds = measured_ticks(source) * tick_ps * 1e-12;
    const nlohmann::json& run = source.run();
    if (run.contains("start_utc") && run["start_utc"].is_string())
        out.start_utc = run["start_utc"].get<std::string>();
    return out;
}

}  // namespace petacq::corrections
