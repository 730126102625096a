#include "tools/petlm/import/declared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/ticks.hpp"
#include "config/configuration.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {
namespace {

using config::Rounding;
using config::TimeUnit;
using nlohmann::json;

/// Files state times to a millisecond, and energies as numbers of 32 bits.
constexpr std::chrono::milliseconds same_time{1};
constexpr double same_duration_s = 1e-3;
constexpr double same_energy = 1e-6;

constexpr const char* unknown_energy_window = "the energy window";
constexpr const char* unknown_pair_rules = "the rules by which its pairs were found";

/// Refuses values that no configuration may have.
template <class Make>
auto checked(const Make& make) {
    try {
        return make();
    } catch (const config::Error& error) {
        throw UsageError(error.what());
    }
}

struct Rule {
    const char* key;  ///< of the configuration; its phrase in `unknown`, too
    const char* option;
    json value;  ///< null: not declared
};

/// Changes the coverage, one subject at a time.
class Declaration {
  public:
    Declaration(daemon::Coverage& coverage, const ImportOptions& options, const ForeignFile& file)
        : coverage_(coverage), options_(options), said_(options.declared), file_(file) {
        limits.file =
            file.made_of ? (*file.made_of)["from"].front().get<std::string>() : options.input.string();
    }

    void rules() {
        energy();
        pairs();
    }
    void times() {
        duration();
        start();
    }

    json declared = json::object();
    DeclaredLimits limits;

  private:
    template <class Record>
    [[nodiscard]] bool holds() const {
        return std::holds_alternative<TakeRecords<Record>>(file_.records);
    }
    [[noreturn]] void contradicts(const std::string& declared_text, const std::string& told) const {
        throw UsageError(
            fmt::format("{}: {} tells {}; expected that, or nothing", declared_text, limits.file, told));
    }
    [[nodiscard]] bool is_unknown(std::string_view phrase) const {
        return std::find(coverage_.unknown.begin(), coverage_.unknown.end(), phrase) !=
               coverage_.unknown.end();
    }
    void now_known(std::string_view phrase) { std::erase(coverage_.unknown, phrase); }

    void energy() {
        if (!said_.lower_keV && !said_.upper_keV) return;
        if (!said_.lower_keV || !said_.upper_keV || !(*said_.lower_keV < *said_.upper_keV)) {
            throw UsageError(
                "--lower-kev, --upper-kev: expected both, the first one lower: the window of the energies");
        }
        if (holds<gpu::Tag>()) throw UsageError("--lower-kev, --upper-kev: the file holds tags");
        const json section = {
            {"filter", true}, {"lower_keV", *said_.lower_keV}, {"upper_keV", *said_.upper_keV}};
        const config::Energy window = checked([&] { return config::energy_from_json(section); });
        if (coverage_.rules.energy && !is_unknown(unknown_energy_window)) {
            const json told = config::to_json(*coverage_.rules.energy);
            if (told != config::to_json(window)) {
                contradicts(fmt::format("--lower-kev {}, --upper-kev {}", *said_.lower_keV, *said_.upper_keV),
                            told["filter"] == true ? fmt::format("{} to {} keV", told["lower_keV"].dump(),
                                                                 told["upper_keV"].dump())
                                                   : std::string("that its energies have no window"));
            }
            return;
        }
        coverage_.rules.energy = window;
        if (daemon::tells(coverage_, unknown_energies)) limits.energy = window;
        declared["lower_keV"] = *said_.lower_keV;
        declared["upper_keV"] = *said_.upper_keV;
        now_known(unknown_energy_window);
        now_known(unknown_singles_window);
        if (holds<gpu::Coincidence>() || holds<gpu::Triple>())
            std::replace(coverage_.unknown.begin(), coverage_.unknown.end(), std::string(unknown_rules),
                         std::string(unknown_pair_rules));
    }

    [[nodiscard]] json window_ticks() const {
        if (said_.window_ticks) return *said_.window_ticks;
        if (!said_.window_ns) return {};
        // Times of other programs are rounded to ticks: no pair may be left outside by that.
        const std::uint64_t window =
            option_ticks("--window-ns", *said_.window_ns, TimeUnit::ns, coverage_.tick_ps, Rounding::up);
        if (window > INT32_MAX) {
            throw UsageError(fmt::format("--window-ns {}: {} ticks; expected at most {}", *said_.window_ns,
                                         window, INT32_MAX));
        }
        return window;
    }
    [[nodiscard]] json delay_ticks() const {
        if (said_.delay_ticks) return *said_.delay_ticks;
        if (!said_.delay_ns) return {};
        return option_ticks("--delay-ns", *said_.delay_ns, TimeUnit::ns, coverage_.tick_ps,
                            Rounding::nearest);
    }
    template <class Value>
    static json or_null(const std::optional<Value>& value) {
        return value ? json(*value) : json();
    }
    [[nodiscard]] std::vector<Rule> asked() const {
        std::vector<Rule> all = {
            {"window_ticks", said_.window_ns ? "--window-ns" : "--window-ticks", window_ticks()},
            {"window_mode", "--window-mode", or_null(said_.window_mode)},
            {"multiples_policy", "--policy", or_null(said_.multiples_policy)},
            {"min_module_difference", "--min-module-difference", or_null(said_.min_module_difference)},
            {"max_ring_difference", "--max-ring-difference", or_null(said_.max_ring_difference)},
            {"delay_ticks", said_.delay_ns ? "--delay-ns" : "--delay-ticks", delay_ticks()}};
        return all;
    }

    void pairs() {
        const std::vector<Rule> all = asked();
        const auto first =
            std::find_if(all.begin(), all.end(), [](const Rule& rule) { return !rule.value.is_null(); });
        if (first == all.end()) return;
        if (holds<gpu::Single>()) {
            throw UsageError(
                fmt::format("{}: the file holds singles, which no coincidence window has made; "
                            "petlm resort finds their pairs by such rules",
                            first->option));
        }
        if (holds<gpu::Tag>()) throw UsageError(fmt::format("{}: the file holds tags", first->option));
        const bool known = coverage_.rules.coincidence.has_value();
        if (!known && all.front().value.is_null()) {
            throw UsageError(
                fmt::format("{}: the file does not tell the coincidence window; expected --window-ticks or "
                            "--window-ns, too",
                            first->option));
        }
        json section = known ? config::to_json(*coverage_.rules.coincidence) : json::object();
        for (const Rule& rule : all) {
            if (rule.value.is_null()) continue;
            const json told = section.value(rule.key, json());
            if (known && !is_unknown(rule.key)) {
                if (told != rule.value)
                    contradicts(fmt::format("{} {}", rule.option, text_of(rule.value)),
                                fmt::format("{} = {}", rule.key, text_of(told)));
                continue;
            }
            section[rule.key] = declared[rule.key] = rule.value;
            now_known(rule.key);
        }
        if (!known) still_unknown(all);
        coverage_.rules.coincidence = checked([&] { return config::coincidence_from_json(section); });
        const config::Coincidence& c = *coverage_.rules.coincidence;
        if (c.delay_ticks && *c.delay_ticks <= c.window_ticks) {
            throw UsageError(fmt::format("a delay of {} ticks; expected a longer one than the window, {}",
                                         *c.delay_ticks, c.window_ticks));
        }
        if (known) return;
        limits.delayeds = c.delay_ticks.has_value();
        if (daemon::tells(coverage_, unknown_dt)) limits.window_ticks = c.window_ticks;
    }
    /// Of all rules, those that have only their defaults now; with a delay, how delayeds were found, too.
    void still_unknown(const std::vector<Rule>& all) {
        now_known(unknown_rules);
        now_known(unknown_pair_rules);
        for (const Rule& rule : all) {
            const bool delay = rule.key == std::string_view("delay_ticks");
            if (rule.value.is_null() != delay) coverage_.unknown.emplace_back(delay ? "delayeds" : rule.key);
        }
        if (!coverage_.rules.energy) coverage_.unknown.emplace_back(unknown_energy_window);
    }
    static std::string text_of(const json& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    }

    [[nodiscard]] std::optional<daemon::Intervals> told_times() const {
        return file_.stated ? file_.stated : coverage_.intervals;
    }
    void duration() {
        const auto told = told_times();
        if (!said_.duration_s) {
            if (said_.start_ticks && !told) {
                throw UsageError(
                    "--start-ticks: the file does not tell for how long it measured; expected --duration-s, "
                    "too");
            }
        } else {
            const std::uint64_t length = option_ticks("--duration-s", *said_.duration_s, TimeUnit::s,
                                                      coverage_.tick_ps, Rounding::nearest);
            if (told) {
                const double seconds = static_cast<double>(told->ticks()) * coverage_.tick_ps * 1e-12;
                const double declared_s = static_cast<double>(length) * coverage_.tick_ps * 1e-12;
                if (std::abs(seconds - declared_s) > same_duration_s)
                    contradicts("--duration-s " + *said_.duration_s, fmt::format("{:.9g} s", seconds));
            } else {
                declare_times(said_.start_ticks.value_or(0), length);
                return;
            }
        }
        if (said_.start_ticks && told->span().start != *said_.start_ticks) {
            contradicts(fmt::format("--start-ticks {}", *said_.start_ticks),
                        fmt::format("that it begins at tick {}", told->span().start));
        }
    }
    void declare_times(std::uint64_t start, std::uint64_t length) {
        if (length == 0) throw UsageError("--duration-s: expected a number of s above 0, at least one tick");
        if (start > UINT64_MAX - length) throw UsageError("--start-ticks: expected an end below 2^64 ticks");
        const gpu::TickRange range{start, start + length};
        coverage_.intervals = range;
        limits.times = range;
        declared["duration_s"] = static_cast<double>(length) * coverage_.tick_ps * 1e-12;
        declared["start_ticks"] = start;
        now_known(unknown_times);
    }
    void start() {
        if (!said_.start_utc) return;
        const auto utc = daemon::utc_time(*said_.start_utc);
        if (!utc) {
            throw UsageError(fmt::format(
                "--start-utc {}: expected a time such as 2026-11-20T18:45:00Z or 2026-11-20T19:45:00+01:00",
                *said_.start_utc));
        }
        const auto times = told_times();
        if (!times || times->empty()) {
            throw UsageError(
                "--start-utc: the file does not tell when its records begin; expected --duration-s, too (and "
                "--start-ticks, unless they begin at 0)");
        }
        const std::uint64_t first = times->span().start;
        if (const auto told = coverage_.anchor ? coverage_.utc_of(first) : std::nullopt) {
            if (*told - *utc > same_time || *utc - *told > same_time)
                contradicts("--start-utc " + *said_.start_utc, daemon::utc_text(*told));
            return;
        }
        coverage_.anchor = daemon::TimeAnchor{first, *utc};
        declared["start_utc"] = daemon::utc_text(*utc);
        now_known(unknown_clock);
    }

    daemon::Coverage& coverage_;
    const ImportOptions& options_;
    const Declared& said_;
    const ForeignFile& file_;
};

}  // namespace

void DeclaredLimits::check_time(std::uint64_t time) const {
    if (!times || (time >= times->start && time < times->end)) return;
    throw BadInput(
        fmt::format("{}: a record at tick {}, outside of the times that --start-ticks and "
                    "--duration-s declare; expected {} to {}",
                    file, time, times->start, times->end - 1));
}

void DeclaredLimits::check_energy(float found_energy) const {
    if (!energy) return;
    const auto found = static_cast<double>(found_energy);
    if (found >= energy->lower_keV * (1 - same_energy) && found <= energy->upper_keV * (1 + same_energy))
        return;
    throw BadInput(
        fmt::format("{}: a record of {} keV, outside of the window that --lower-kev and "
                    "--upper-kev declare; expected {} to {}",
                    file, found_energy, energy->lower_keV, energy->upper_keV));
}

void DeclaredLimits::check(const gpu::Single& single) const {
    check_time(single.time);
    check_energy(single.energy);
}

void DeclaredLimits::check(const gpu::Tag& tag) const {
    check_time(tag.time);
}

void DeclaredLimits::check(const gpu::Coincidence& pair) const {
    check_time(pair.time);
    check_energy(pair.energy_a);
    check_energy(pair.energy_b);
    if (window_ticks && pair.dt > *window_ticks) {
        throw BadInput(
            fmt::format("{}: a pair of photons {} ticks apart, more than the declared window; "
                        "expected at most {}",
                        file, pair.dt, *window_ticks));
    }
    if (!delayeds && pair.kind == gpu::Kind::delayed) {
        throw BadInput(
            fmt::format("{}: a delayed pair, and no delay is declared; expected --delay-ticks or "
                        "--delay-ns with the window",
                        file));
    }
}

WithDeclared with_declared(daemon::Coverage coverage, const ImportOptions& options, const ForeignFile& file) {
    WithDeclared with{std::move(coverage), nullptr, {}};
    Declaration declaration(with.coverage, options, file);
    declaration.rules();
    declaration.times();
    with.declared = std::make_shared<const json>(std::move(declaration.declared));
    with.limits = std::move(declaration.limits);
    return with;
}

}  // namespace petacq::petlm
