#include "tools/petlm/union/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// Clocks of hosts differ by less, and so does what boards drift in a day.
constexpr std::chrono::seconds clocks_differ{60};

/// However the paths are spelt.
bool is_same(const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code absent;
    return a.lexically_normal() == b.lexically_normal() || std::filesystem::equivalent(a, b, absent);
}

/// What the hosts must have in common to have written the same records of the same datagrams.
json alike(const json& document) {
    const json& configuration = document["configuration"];
    json scanner = document["scanner"];
    scanner.erase("sources");
    const auto section = [&](const char* name) { return configuration.value(name, json()); };
    json receive = section("receive");
    const auto of_receive = [&](const char* name) {
        return receive.is_object() ? receive.value(name, json()) : json();
    };
    return {{"scanner", scanner},
            {"sources of the scanner", document["scanner"].value("sources", json())},
            {"calibration", document.value("calibration_sha256", json())},
            {"clock", configuration.value("clock", "")},
            {"energy window", section("energy")},
            {"gammas", section("gammas")},
            {"coincidence rules", section("coincidence")},
            {"list of sources", section("sources")},
            {"framing", of_receive("framing")},
            {"layout", of_receive("layout")}};
}

}  // namespace

HeardStream::HeardStream(const UnionOptions& options) : options_(options) {
    for (std::size_t i = 0; i < options.runs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (is_same(options.runs[i], options.runs[j]))
                throw UsageError(options.runs[i].string() + ": named twice; expected the runs of two hosts");
        }
    }
    look();
}

void HeardStream::look() {
    // First those that are there: a run that comes later has no hits from before what they have by now.
    for (HeardRun* const run : pointers_)
        run->look();
    for (std::size_t i = 0; i < options_.runs.size(); ++i) {
        const std::filesystem::path& directory = options_.runs[i];
        const bool waits = options_.follow && !std::filesystem::exists(directory / daemon::run_file);
        if (!waits && !is_open(directory)) open(directory, {false, i});
    }
    for (std::size_t i = 0; i < options_.runs.size(); ++i)
        open_continued(i);
    for (const HeardRun* const run : pointers_) {
        if (!options_.follow && !run->ended()) {
            throw UsageError(run->directory().string() +
                             ": is still written; expected a run that has ended, or --follow");
        }
    }
}

void HeardStream::open(const std::filesystem::path& directory, RunOrder place) {
    auto run = std::make_unique<HeardRun>(directory);
    check(*run);
    run->look();
    runs_.emplace(place, std::move(run));
    pointers_.clear();
    for (const auto& [its_place, opened] : runs_)
        pointers_.push_back(opened.get());
}

bool HeardStream::is_open(const std::filesystem::path& directory) const {
    return std::any_of(pointers_.begin(), pointers_.end(),
                       [&](const HeardRun* run) { return is_same(run->directory(), directory); });
}

void HeardStream::open_continued(std::size_t named) {
    const std::filesystem::path& directory = options_.runs[named];
    const std::string name = (directory / "").lexically_normal().parent_path().filename().string();
    const std::filesystem::path beside = (directory / "").lexically_normal().parent_path().parent_path();
    std::filesystem::path latest = directory;
    for (unsigned number = 2;; ++number) {
        const auto before = std::find_if(pointers_.begin(), pointers_.end(), [&](const HeardRun* run) {
            return is_same(run->directory(), latest);
        });
        const std::filesystem::path next = beside / fmt::format("{}-{}", name, number);
        if (before == pointers_.end() || !std::filesystem::exists(next / daemon::run_file)) return;
        if (!is_open(next)) {
            if (!continues(next, **before)) return;
            open(next, {true, named, number});
        }
        latest = next;
    }
}

bool HeardStream::continues(const std::filesystem::path& directory, const HeardRun& before) const {
    if (!before.ended()) return false;
    const auto anchor = daemon::coverage_of_run(run_document(directory)).anchor;
    if (!anchor) return false;  // it waits for its start
    return std::any_of(pointers_.begin(), pointers_.end(), [&](const HeardRun* run) {
        if (run == &before) return false;
        if (!run->ended()) return true;
        const daemon::Coverage own = run->coverage();
        return own.intervals && own.span().start <= anchor->ticks && anchor->ticks < own.span().end;
    });
}

void HeardStream::check(const HeardRun& run) const {
    if (pointers_.empty()) return;
    const HeardRun& other = *pointers_.front();
    const json wanted = alike(other.document());
    const json found = alike(run.document());
    for (const auto& [what, value] : wanted.items()) {
        if (found[what] == value) continue;
        // Of a scanner, the first member that differs says more than the whole.
        const json difference = json::diff(value, found[what]);
        throw UsageError(fmt::format("{} and {} are not of one stream: their {} differs: {}",
                                     other.directory().string(), run.directory().string(), what,
                                     json_line(difference.front())));
    }
    const bool named =
        std::find(options_.runs.begin(), options_.runs.end(), run.directory()) != options_.runs.end();
    if (run.name() == other.name() || options_.any_name || !named) return;
    throw UsageError(
        fmt::format("{} and {} have different names, {} and {}; expected one run, or --any-name if they are "
                    "of one stream",
                    other.directory().string(), run.directory().string(), other.name(), run.name()));
}

bool HeardStream::ended() const {
    return !pointers_.empty() &&
           std::all_of(pointers_.begin(), pointers_.end(), [](const HeardRun* run) { return run->ended(); });
}

const HeardRun& HeardStream::first() const {
    const HeardRun* first = nullptr;
    std::uint64_t start = 0;
    for (const HeardRun* const run : pointers_) {
        const daemon::Coverage coverage = run->coverage();
        if (!coverage.intervals || coverage.intervals->empty()) continue;
        if (first == nullptr || coverage.span().start < start) {
            first = run;
            start = coverage.span().start;
        }
    }
    return first != nullptr ? *first : *pointers_.front();
}

daemon::Coverage HeardStream::coverage() const {
    std::vector<daemon::Coverage> all;
    for (const HeardRun* const run : pointers_) {
        all.push_back(run->coverage());
        // Each run was recorded by the same rules; that one was cut off does not matter to the others.
        all.back().loss = {};
    }
    daemon::Coverage united;
    try {
        united = daemon::united(all, true);
    } catch (const daemon::CoverageError& error) {
        throw UsageError(fmt::format("the runs are not of one stream: {}", error.what()));
    }
    const daemon::Coverage of_first = first().coverage();
    if (of_first.anchor) united.anchor = of_first.anchor;
    return united;
}

std::string HeardStream::doubt() const {
    const daemon::Coverage one = first().coverage();
    for (const HeardRun* const run : pointers_) {
        const daemon::Coverage other = run->coverage();
        const auto there = other.anchor ? one.utc_of(other.anchor->ticks) : std::nullopt;
        if (!there) continue;
        const auto apart = std::chrono::duration<double>(other.anchor->utc - *there);
        if (std::abs(apart.count()) < std::chrono::duration<double>(clocks_differ).count()) continue;
        return fmt::format("{} and {} have the same detector time {:.0f} s apart: are they of one stream?",
                           first().directory().string(), run->directory().string(), std::abs(apart.count()));
    }
    return "";
}

}  // namespace petacq::petlm
