#include "daemon/tap/request.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config/base/json_file.hpp"
#include "daemon/system/version.hpp"
#include "daemon/tap/message.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

constexpr int max_depth = 4;
constexpr const char* kinds = R"(expected "coincidences", "singles" or "triples")";

[[noreturn]] void refuse(const std::string& message) {
    throw std::invalid_argument(message);
}

std::string shown(const json& value) {
    constexpr std::size_t longest = 40;
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (text.size() > longest) text = text.substr(0, longest) + "...";
    return text;
}

RecordKind kind_of(const json& value, const TapSource& source) {
    if (value == "coincidences") {
        if (!source.coincidences)
            refuse("kind: no coincidences, since listmode.write_coincidences is false; expected \"singles\"");
        return RecordKind::coincidences;
    }
    if (value == "singles") {
        if (!source.singles)
            refuse("kind: no singles, since listmode.write_singles is false; expected \"coincidences\"");
        return RecordKind::singles;
    }
    if (value == "triples") {
        if (!source.triples && source.coincidences)
            refuse("kind: no triples, since there is no section gammas; expected \"coincidences\"");
        if (!source.triples)
            refuse("kind: no triples, since listmode.write_coincidences is false; expected \"singles\"");
        return RecordKind::triples;
    }
    refuse(std::string("kind: ") + kinds + ", found " + shown(value));
}

std::uint64_t prescale_of(const json& value) {
    const bool counts = value.is_number_unsigned();
    if (!counts || value < 1 || value > TapRequest::max_prescale) {
        refuse("prescale: expected a whole number from 1 to " + std::to_string(TapRequest::max_prescale) +
               ", found " + shown(value));
    }
    return value;
}

json fields_of(RecordKind kind) {
    if (kind == RecordKind::singles)
        return json::array({{"time", "<u8"}, {"crystal", "<u4"}, {"energy", "<f4"}});
    json fields = json::array({{"time", "<u8"},
                               {"dt", "<u4"},
                               {"crystal_a", "<u4"},
                               {"crystal_b", "<u4"},
                               {"energy_a", "<f4"},
                               {"energy_b", "<f4"},
                               {"kind", "<u4"}});
    if (kind == RecordKind::triples) {
        for (const auto& [name, type] : {std::pair{"gamma_dt", "<i4"},
                                         {"gamma_crystal", "<u4"},
                                         {"gamma_energy", "<f4"},
                                         {"third", "<u4"}})
            fields.push_back({name, type});
    }
    return fields;
}

}  // namespace

TapRequest TapRequest::parse(std::string_view line, const TapSource& source) {
    const char* const expected = R"(expected a line such as {"kind": "coincidences", "prescale": 10})";
    if (config::json_nested_deeper(line, max_depth)) refuse(expected);
    const json document = json::parse(line, nullptr, false);
    if (!document.is_object()) refuse(expected);
    TapRequest request;
    for (const auto& [key, value] : document.items()) {
        if (key == "kind") continue;
        if (key != "prescale") refuse("expected the keys kind and prescale, found " + shown(key));
        request.prescale = prescale_of(value);
    }
    if (!document.contains("kind")) refuse(std::string("kind: ") + kinds + ", found nothing");
    request.kind = kind_of(document["kind"], source);
    return request;
}

std::string tap_answer(const TapRequest& request, const TapSource& source) {
    const json answer = {{"format", "petacqd tap"},
                         {"version", tap_version},
                         {"daemon", version},
                         {"kind", name_of(request.kind)},
                         {"prescale", request.prescale},
                         {"record_bytes", record_bytes_of(request.kind)},
                         {"fields", fields_of(request.kind)},
                         {"tick_ps", source.tick_ps},
                         {"crystals", source.crystals},
                         {"scanner", source.scanner}};
    return answer.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace petacq::daemon
