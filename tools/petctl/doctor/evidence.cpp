#include "tools/petctl/doctor/evidence.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

/// Without those that were there before: a board that was put right since is not blamed for them.
std::set<Sample> taken_since(const json& before, std::set<Sample> samples) {
    std::set<Sample> earlier;
    add_samples(before, earlier);
    std::erase_if(samples, [&](const Sample& sample) { return earlier.contains(sample); });
    return samples;
}

Expected expected_of(const json& status) {
    const auto marker = [&](const char* key) {
        return static_cast<unsigned>(number(at(status, {"reception", key})));
    };
    const json& framing = at(status, {"reception", "framing"});
    const json& layout = at(status, {"reception", "layout"});
    const config::FrameVersion version = frame_version_of(status);
    const bool has_tail = version == config::FrameVersion::one;
    return {framing == config::name_of(config::Framing::bare) ? config::Framing::bare
                                                              : config::Framing::sequenced,
            {marker("head_marker"), has_tail ? marker("tail_marker") : 0},
            marker("tag_marker"),
            layout.is_string() && !layout.get_ref<const std::string&>().empty(),
            version};
}

}  // namespace

Evidence::Evidence(const json& first, const json& last, const std::set<Sample>& samples, Meanwhile meanwhile)
    : before(first),
      after(last),
      expected(expected_of(last)),
      seen(impression_of(taken_since(first, samples), expected)),
      packets(std::move(meanwhile.packets)),
      lost(std::move(meanwhile.lost)) {}

std::string Evidence::text(const char* key) const {
    const json& value = at(after, {"reception", key});
    return value.is_string() ? value.get<std::string>() : "";
}

double Evidence::gained(const char* section, const char* counter) const {
    return number(at(after, {"total", section, counter})) - number(at(before, {"total", section, counter}));
}

double Evidence::seconds() const {
    return number(at(after, {"uptime_s"})) - number(at(before, {"uptime_s"}));
}

bool Evidence::other_framing() const {
    return seen.sure_of_framing() && seen.known_header && seen.framing != expected.framing;
}

double number(const json& value) {
    return value.is_number() ? value.get<double>() : 0;
}

const json& list(const json& document, std::initializer_list<const char*> path) {
    static const json empty = json::array();
    const json& found = at(document, path);
    return found.is_array() ? found : empty;
}

std::string joined(const std::vector<std::string>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
}

std::string ranges(const std::set<unsigned>& numbers) {
    std::vector<std::string> parts;
    for (auto n = numbers.begin(); n != numbers.end();) {
        const unsigned first = *n;
        unsigned last = first;
        while (++n != numbers.end() && *n == last + 1)
            last = *n;
        parts.push_back(first == last ? fmt::to_string(first) : fmt::format("{}-{}", first, last));
    }
    return joined(parts);
}

std::string hexadecimal(std::span<const std::byte> bytes) {
    std::vector<std::string> parts;
    for (const std::byte byte : bytes)
        parts.push_back(fmt::format("{:02x}", std::to_integer<unsigned>(byte)));
    return fmt::format("{}", fmt::join(parts, " "));
}

std::string sender_name(const SenderName& sender) {
    return sender.second ? fmt::format("source {}", *sender.second) : sender.first;
}

const json* listed(const Evidence& evidence, const SenderName& name) {
    for (const json& entry : list(evidence.after, {"reception", "listed"})) {
        const json& id = at(entry, {"id"});
        if (name.second ? id == *name.second : at(entry, {"address"}) == name.first) return &entry;
    }
    return nullptr;
}

void Diagnosis::add(daemon::Level level, const char* subject, const std::string& text,
                    const std::string& fix) {
    findings.push_back({level, subject, text, fix});
}

void Diagnosis::write(const std::string& where, const std::string& piece) {
    to_write += fmt::format("In {}:\n{}\n", where, piece);
}

}  // namespace petacq::petctl
