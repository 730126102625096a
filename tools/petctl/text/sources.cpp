#include "tools/petctl/text/sources.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

/// Known sources and unknown ones.
std::vector<const json*> everybody(const json& status) {
    std::vector<const json*> all;
    for (const char* list : {"sources", "unknown_sources"}) {
        const json& sources = at(status, {list});
        if (!sources.is_array()) continue;
        for (const json& source : sources)
            all.push_back(&source);
    }
    return all;
}

std::string ago(const json& seconds) {
    return seconds.is_number() ? duration(seconds) + " ago" : "never";
}

/// The entry of a scanner description; null if a part of it is not known.
json entry_of(const json& source) {
    const std::set<unsigned> numbers = bdms_of(source);
    if (numbers.empty()) return {};
    const json& id = at(source, {"id"});
    if (id.is_number_unsigned()) return {{"id", id}, {"bdms", numbers}};
    const json& address = at(source, {"address"});
    if (!address.is_string()) return {};
    const std::string text = address;
    const std::size_t colon = text.rfind(':');
    unsigned port = 0;
    if (colon == std::string::npos ||
        std::from_chars(text.data() + colon + 1, text.data() + text.size(), port).ec != std::errc()) {
        return {};
    }
    return {{"address", text.substr(0, colon)}, {"port", port}, {"bdms", numbers}};
}

/// A source that the status lists, and one that is heard.
bool same(const json& listed, const json& entry) {
    if (const json& id = at(listed, {"id"}); !id.is_null()) return id == at(entry, {"id"});
    return entry.contains("address") &&
           at(listed, {"address"}) ==
               fmt::format("{}:{}", text_of(at(entry, {"address"})), at(entry, {"port"}).dump());
}

}  // namespace

std::vector<unsigned> numbers_in(std::string_view ranges) {
    std::vector<unsigned> numbers;
    const char* at = ranges.data();
    const char* const end = at + ranges.size();
    const auto number = [&]() -> std::optional<unsigned> {
        unsigned n = 0;
        const auto [rest, error] = std::from_chars(at, end, n);
        if (error != std::errc() || n > 65'535) return {};
        at = rest;
        return n;
    };
    while (at != end) {
        const auto first = number();
        if (!first) break;
        auto last = first;
        if (at != end && *at == '-') {
            ++at;
            last = number();
            if (!last) break;
        }
        for (unsigned n = *first; n <= *last; ++n)
            numbers.push_back(n);
        if (at == end || *at != ',') break;
        ++at;
    }
    return numbers;
}

config::FrameVersion frame_version_of(const json& status) {
    return at(status, {"reception", "frame_version"}) == 2 ? config::FrameVersion::two
                                                           : config::FrameVersion::one;
}

std::set<unsigned> bdms_of(const json& source) {
    const json& bdms = at(source, {"bdms"});
    if (!bdms.is_string()) return {};
    const auto numbers = numbers_in(bdms.get_ref<const std::string&>());
    return {numbers.begin(), numbers.end()};
}

Lines sources_lines(const json& status) {
    Table table{{true, true, true, false, false, true, false, false}, {}};
    const auto title = [](const char* text) { return Span{text, Style::faint}; };
    table.rows.push_back({title("source"), title("address"), title("state"), title("datagrams"),
                          title("frames"), title("bdms"), title("first seen"), title("last seen")});
    for (const json* source : everybody(status)) {
        const json& state = at(*source, {"state"});
        table.rows.push_back({{text_of(at(*source, {"id"}))},
                              {text_of(at(*source, {"address"}))},
                              state.is_string() ? Span{text_of(state)} : Span{"unknown", Style::warning},
                              {text_of(at(*source, {"datagrams"}))},
                              {text_of(at(*source, {"frames"}))},
                              {text_of(at(*source, {"bdms"}))},
                              {ago(at(*source, {"first_seen_s"}))},
                              {ago(at(*source, {"last_seen_s"}))}});
    }
    if (table.rows.size() == 1) return {{{"nothing is heard"}}};
    return table_lines(table);
}

json sources_heard(const json& status) {
    json list = json::array();
    std::set<json> ids;  // a sender may be heard at several addresses
    for (const json* source : everybody(status)) {
        json entry = entry_of(*source);
        if (entry.is_null() || (entry.contains("id") && !ids.insert(entry["id"]).second)) continue;
        list.push_back(std::move(entry));
    }
    return list;
}

std::string list_text(const json& sources) {
    std::string text;
    for (const json& entry : sources)
        text += (text.empty() ? "\n    " : ",\n    ") + entry.dump();
    return text.empty() ? "[]\n" : "[" + text + "\n]\n";
}

std::vector<std::string> not_heard(const json& status, const json& heard) {
    const json& listed = at(status, {"reception", "listed"});
    if (!listed.is_array()) return {};
    std::set<unsigned> modules;
    for (const json& entry : heard)
        modules.merge(entry.at("bdms").get<std::set<unsigned>>());
    std::vector<std::string> names;
    for (const json& source : listed) {
        const json& id = at(source, {"id"});
        const std::string name = id.is_null() ? text_of(at(source, {"address"})) : "source " + id.dump();
        if (std::none_of(heard.begin(), heard.end(),
                         [&](const json& entry) { return same(source, entry); })) {
            names.push_back(fmt::format("{} (BDM {})", name, text_of(at(source, {"bdms"}))));
            continue;
        }
        for (const unsigned bdm : bdms_of(source))
            if (!modules.contains(bdm)) names.push_back(fmt::format("BDM {} of {}", bdm, name));
    }
    return names;
}

}  // namespace petacq::petctl
