#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/ticks.hpp"
#include "config/configuration.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/declared/declaration.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {
namespace {

using config::Rounding;
using daemon::RecordKind;
using nlohmann::json;

constexpr const char* unknown_energy_window = "the energy window";
constexpr const char* unknown_pair_rules = "the rules by which its pairs were found";
constexpr const char* unknown_gamma_rules = "the rules by which its gammas were found";

/// Of a section of the configuration.
struct Rule {
    const char* key;
    std::string option;
    json value;  ///< null: not declared
};
using Rules = std::vector<Rule>;

template <class Value>
json or_null(const std::optional<Value>& value) {
    return value ? json(*value) : json();
}

/// `key`: without "_ticks", as is the option. Times of other programs are rounded to ticks: with
/// Rounding::up, no record is left outside of a window by that.
template <class Ticks>
Rule time_rule(const Declaration& d, const char* key, const std::string& option,
               const std::optional<Ticks>& ticks, const std::optional<std::string>& ns, Rounding rounding) {
    if (!ns) return {key, option + "-ticks", or_null(ticks)};
    const std::string in_ns = option + "-ns";
    const std::uint64_t found =
        option_ticks(in_ns.c_str(), *ns, config::TimeUnit::ns, d.coverage.tick_ps, rounding);
    if (rounding == Rounding::up && found > INT32_MAX) {
        throw UsageError(fmt::format("{} {}: {} ticks; expected at most {}", in_ns, *ns, found, INT32_MAX));
    }
    return {key, in_ns, found};
}

Rules pair_rules(const Declaration& d) {
    const Declared& said = d.said;
    return {time_rule(d, "window_ticks", "--window", said.window_ticks, said.window_ns, Rounding::up),
            {"window_mode", "--window-mode", or_null(said.window_mode)},
            {"multiples_policy", "--policy", or_null(said.multiples_policy)},
            {"max_multiplicity", "--max-multiplicity", or_null(said.max_multiplicity)},
            {"min_module_difference", "--min-module-difference", or_null(said.min_module_difference)},
            {"max_ring_difference", "--max-ring-difference", or_null(said.max_ring_difference)},
            time_rule(d, "delay_ticks", "--delay", said.delay_ticks, said.delay_ns, Rounding::nearest),
            {"delayeds", "--delayed-rule", or_null(said.delayed_rule)}};
}

Rules gamma_rules(const Declaration& d) {
    const DeclaredGammas& said = d.said.gammas;
    return {{"lower_keV", "--gamma-lower-kev", or_null(said.lower_keV)},
            {"upper_keV", "--gamma-upper-kev", or_null(said.upper_keV)},
            time_rule(d, "before_ticks", "--gamma-before", said.before_ticks, said.before_ns, Rounding::up),
            time_rule(d, "after_ticks", "--gamma-after", said.after_ticks, said.after_ns, Rounding::up),
            {"policy", "--gamma-policy", or_null(said.policy)},
            time_rule(d, "delay_ticks", "--gamma-delay", said.delay_ticks, said.delay_ns, Rounding::nearest)};
}

/// nullptr: none is declared.
const Rule* first_declared(const Rules& rules) {
    const auto first =
        std::find_if(rules.begin(), rules.end(), [](const Rule& rule) { return !rule.value.is_null(); });
    return first == rules.end() ? nullptr : &*first;
}

const Rule& rule_of(const Rules& rules, std::string_view key) {
    return *std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.key == key; });
}

std::string text_of(const json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Refuses values that no configuration may have.
template <class Make>
auto checked_rules(const Make& make) {
    try {
        return make();
    } catch (const config::Error& error) {
        throw UsageError(error.what());
    }
}

/// Sets in a section what is not told; `told`: whether the file tells the section, but for the keys in
/// `unknown`, where their names have this prefix.
void set_declared(Declaration& d, const Rules& rules, bool told, const std::string& prefix, json& section,
                  json& declared) {
    for (const auto& [key, option, value] : rules) {
        if (value.is_null()) continue;
        if (told && !d.is_unknown(prefix + key)) {
            const json found = section.value(key, json());
            if (found != value) {
                d.contradicts(fmt::format("{} {}", option, text_of(value)),
                              fmt::format("{}{} = {}", prefix, key, text_of(found)));
            }
            continue;
        }
        section[key] = declared[key] = value;
        d.now_known(prefix + key);
    }
}

void declare_energy(Declaration& d) {
    const auto& lower = d.said.lower_keV;
    const auto& upper = d.said.upper_keV;
    if (!lower && !upper) return;
    if (!lower || !upper || !(*lower < *upper)) {
        throw UsageError(
            "--lower-kev, --upper-kev: expected both, the first one lower: the window of the energies");
    }
    if (d.file.kind == RecordKind::tags) throw UsageError("--lower-kev, --upper-kev: the file holds tags");
    const json section = {{"filter", true}, {"lower_keV", *lower}, {"upper_keV", *upper}};
    const config::Energy window = checked_rules([&] { return config::energy_from_json(section); });
    if (d.coverage.rules.energy && !d.is_unknown(unknown_energy_window)) {
        const json told = config::to_json(*d.coverage.rules.energy);
        if (told != config::to_json(window)) {
            d.contradicts(fmt::format("--lower-kev {}, --upper-kev {}", *lower, *upper),
                          told["filter"] == true ? fmt::format("{} to {} keV", told["lower_keV"].dump(),
                                                               told["upper_keV"].dump())
                                                 : std::string("that its energies have no window"));
        }
        return;
    }
    d.coverage.rules.energy = window;
    if (daemon::tells(d.coverage, daemon::unknown_energies)) d.limits.energy = window;
    d.declared["lower_keV"] = *lower;
    d.declared["upper_keV"] = *upper;
    d.now_known(unknown_energy_window);
    d.now_known(daemon::unknown_singles_window);
}

void check_pair_rules(const Declaration& d, const Rules& rules, bool told) {
    const Rule* const first = first_declared(rules);
    if (d.file.kind == RecordKind::singles) {
        throw UsageError(
            fmt::format("{}: the file holds singles, which no coincidence window has made; "
                        "petlm resort finds their pairs by such rules",
                        first->option));
    }
    if (d.file.kind == RecordKind::tags)
        throw UsageError(fmt::format("{}: the file holds tags", first->option));
    if (told) return;
    if (rule_of(rules, "window_ticks").value.is_null()) {
        throw UsageError(
            fmt::format("{}: the file does not tell the coincidence window; expected --window-ticks or "
                        "--window-ns, too",
                        first->option));
    }
    if (!rule_of(rules, "delayeds").value.is_null() && rule_of(rules, "delay_ticks").value.is_null())
        throw UsageError("--delayed-rule: expected --delay-ticks or --delay-ns, too");
}

/// Those that have only their defaults. How delayeds were found is no question if there are none.
std::vector<std::string> left_open(const Rules& rules, const std::string& prefix) {
    std::vector<std::string> open;
    for (const Rule& rule : rules) {
        const std::string_view key = rule.key;
        if (!rule.value.is_null() || key == "delay_ticks") continue;
        if (key != "delayeds" || !rule_of(rules, "delay_ticks").value.is_null())
            open.push_back(prefix + rule.key);
    }
    return open;
}

void declare_pairs(Declaration& d) {
    const Rules rules = pair_rules(d);
    if (first_declared(rules) == nullptr) return;
    auto& coincidence = d.coverage.rules.coincidence;
    const bool told = coincidence.has_value();
    check_pair_rules(d, rules, told);
    json section = told ? config::to_json(*coincidence) : json::object();
    set_declared(d, rules, told, "", section, d.declared);
    coincidence = checked_rules([&] { return config::coincidence_from_json(section); });
    if (coincidence->delay_ticks && *coincidence->delay_ticks <= coincidence->window_ticks) {
        throw UsageError(fmt::format("a delay of {} ticks; expected a longer one than the window, {}",
                                     *coincidence->delay_ticks, coincidence->window_ticks));
    }
    if (told) return;
    d.still_unknown(unknown_pair_rules, left_open(rules, ""));
    d.limits.delayeds = coincidence->delay_ticks.has_value();
    if (daemon::tells(d.coverage, daemon::unknown_dt)) d.limits.window_ticks = coincidence->window_ticks;
}

void check_gammas(const config::Gammas& gammas) {
    if (!(gammas.lower_keV <= gammas.upper_keV))
        throw UsageError("--gamma-lower-kev, --gamma-upper-kev: expected the first one lower");
    const std::uint64_t longest = std::uint64_t{gammas.before_ticks} + gammas.after_ticks;
    if (gammas.delay_ticks && *gammas.delay_ticks <= longest) {
        throw UsageError(
            fmt::format("a delay of gammas of {} ticks; expected more than the times before and after a pair "
                        "together, {}",
                        *gammas.delay_ticks, longest));
    }
}

void declare_gammas(Declaration& d) {
    const Rules rules = gamma_rules(d);
    const Rule* const first = first_declared(rules);
    if (first == nullptr) return;
    if (d.file.kind != RecordKind::triples)
        throw UsageError(fmt::format("{}: the file holds no triples, whose rule this is", first->option));
    auto& gammas = d.coverage.rules.gammas;
    const bool told = gammas.has_value();
    for (const char* key : {"lower_keV", "upper_keV", "before_ticks", "after_ticks"}) {
        if (told || !rule_of(rules, key).value.is_null()) continue;
        throw UsageError(fmt::format("{}: the file does not tell the rules of gammas; expected {}, too",
                                     first->option, rule_of(rules, key).option));
    }
    json section = told ? config::to_json(*gammas) : json::object();
    json declared = json::object();
    set_declared(d, rules, told, "gammas.", section, declared);
    gammas = checked_rules([&] { return config::gammas_from_json(section); });
    check_gammas(*gammas);
    if (!declared.empty()) d.declared["gammas"] = declared;
    if (told) return;
    d.still_unknown(unknown_gamma_rules, left_open(rules, "gammas."));
    d.limits.gammas = gammas;
}

}  // namespace

void declare_rules(Declaration& d) {
    const bool triples = d.file.kind == RecordKind::triples;
    const Declared& said = d.said;
    const bool any = said.lower_keV || said.upper_keV || first_declared(pair_rules(d)) != nullptr ||
                     first_declared(gamma_rules(d)) != nullptr;
    if (any && (triples || d.file.kind == RecordKind::coincidences)) {
        std::vector<std::string> each = {unknown_pair_rules, unknown_energy_window};
        if (triples) each.insert(each.begin() + 1, unknown_gamma_rules);
        d.still_unknown(daemon::unknown_rules, each);
    }
    declare_energy(d);
    declare_pairs(d);
    declare_gammas(d);
}

}  // namespace petacq::petlm
