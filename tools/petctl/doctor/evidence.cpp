#include "tools/petctl/doctor/evidence.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

constexpr std::size_t most_named = 12;

/// Without those that were there before: a board that was put right since is not blamed for them.
std::set<Sample> taken_since(const json& before, std::set<Sample> samples) {
    std::set<Sample> earlier;
    add_samples(before, earlier);
    std::erase_if(samples, [&](const Sample& sample) { return earlier.contains(sample); });
    return samples;
}

}  // namespace

Evidence::Evidence(const json& first, const json& last, const std::set<Sample>& samples)
    : before(first),
      after(last),
      seen(impression_of(taken_since(first, samples),
                         static_cast<unsigned>(number(at(after, {"reception", "tag_marker"}))))) {}

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
    return seen.sure_of_framing() && config::name_of(*seen.framing) != text("framing");
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
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > most_named) text += fmt::format(" and {} more", names.size() - most_named);
    return text;
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
