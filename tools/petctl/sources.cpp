#include "tools/petctl/sources.hpp"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "tools/petctl/values.hpp"

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
    const json& bdms = at(source, {"bdms"});
    const std::vector<unsigned> numbers =
        bdms.is_string() ? numbers_in(bdms.get_ref<const std::string&>()) : std::vector<unsigned>();
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

}  // namespace

std::vector<unsigned> numbers_in(std::string_view ranges) {
    std::vector<unsigned> numbers;
    const char* at = ranges.data();
    const char* const end = at + ranges.size();
    const auto number = [&]() -> std::optional<unsigned> {
        unsigned n = 0;
        const auto [rest, error] = std::from_chars(at, end, n);
        if (error != std::errc() || n > 255) return {};
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

std::string sources_list(const json& status) {
    std::string text;
    std::set<json> ids;  // a sender may be heard at several addresses
    for (const json* source : everybody(status)) {
        const json entry = entry_of(*source);
        if (entry.is_null() || (entry.contains("id") && !ids.insert(entry["id"]).second)) continue;
        text += (text.empty() ? "\n    " : ",\n    ") + entry.dump();
    }
    return text.empty() ? "[]\n" : "[" + text + "\n]\n";
}

}  // namespace petacq::petctl
