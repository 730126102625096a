#include "daemon/run/ledger.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;
using enum CounterKind;

// clang-format off
#define PETACQ_COUNTER(section, name, kind, unit, column, metric, help)                   \
    LedgerCounter{#section, #name, kind, unit, column, metric, help,                      \
                  [](const Ledger& ledger) -> std::uint64_t { return ledger.section.name; }, \
                  [](Ledger& ledger) -> std::uint64_t& { return ledger.section.name; }},
constexpr auto counters = std::to_array<LedgerCounter>({
    PETACQ_DATAGRAM_COUNTERS(PETACQ_COUNTER)
    PETACQ_FRAME_COUNTERS(PETACQ_COUNTER)
    PETACQ_SINGLE_COUNTERS(PETACQ_COUNTER)
    PETACQ_PENDING_COUNTERS(PETACQ_COUNTER)
    PETACQ_PAIR_COUNTERS(PETACQ_COUNTER)
    PETACQ_SAVED_SINGLES_COUNTERS(PETACQ_COUNTER)
    PETACQ_GAMMA_COUNTERS(PETACQ_COUNTER)
    PETACQ_TRIPLE_COUNTERS(PETACQ_COUNTER)
    PETACQ_TAG_COUNTERS(PETACQ_COUNTER)
    PETACQ_TAGS_OF_RUN_COUNTERS(PETACQ_COUNTER)
});
// clang-format on
static_assert(sizeof(Ledger) == (counters.size() + 1) * sizeof(std::uint64_t),
              "every section is in the table; `numbered` takes the last word");

LedgerTerm term(std::string_view name, std::string_view section, std::uint64_t times) {
    if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
        section = name.substr(0, dot);
        name = name.substr(dot + 1);
    }
    const auto* const counter = std::find_if(counters.begin(), counters.end(), [&](const LedgerCounter& c) {
        return c.section == section && c.name == name;
    });
    assert(counter != counters.end());
    return {counter->section, counter->name, times, counter->of};
}

/// Reads "a + b = 2 x c + d".
LedgerIdentity identity(const IdentityFormula& formula) {
    LedgerIdentity identity{formula.name, {}, {}};
    std::vector<LedgerTerm>* side = &identity.left;
    std::uint64_t times = 1;
    std::istringstream words(formula.formula);
    for (std::string word; words >> word;) {
        if (word == "+" || word == "x") continue;
        if (word == "=") {
            side = &identity.right;
        } else if (word == "2") {
            times = 2;
        } else {
            side->push_back(term(word, formula.section, times));
            times = 1;
        }
    }
    return identity;
}

/// Modulo 2^64, which is enough to tell whether the sides of an identity agree.
std::uint64_t sum(const Ledger& ledger, const std::vector<LedgerTerm>& terms) {
    std::uint64_t total = 0;
    for (const LedgerTerm& term : terms)
        total += term.times * term.of(ledger);
    return total;
}

/// "a 1 + 2 x b 3". Omits zero terms where a side has several, but a side is never empty.
std::string words(const Ledger& ledger, const std::vector<LedgerTerm>& terms, bool with_sections) {
    std::string text;
    for (const LedgerTerm& term : terms) {
        const std::uint64_t value = term.of(ledger);
        if (value == 0 && terms.size() > 1) continue;
        if (!text.empty()) text += " + ";
        if (term.times != 1) text += std::to_string(term.times) + " x ";
        if (with_sections) text += std::string(term.section) + ".";
        text += std::string(term.name) + " " + std::to_string(value);
    }
    return text.empty() ? "0" : text;
}

}  // namespace

std::span<const LedgerCounter> ledger_counters() {
    return counters;
}

const std::vector<const LedgerCounter*>& ledger_columns() {
    static const std::vector<const LedgerCounter*> columns = [] {
        std::vector<const LedgerCounter*> listed;
        for (const LedgerCounter& counter : counters) {
            if (counter.column != 0) listed.push_back(&counter);
        }
        std::sort(listed.begin(), listed.end(), [](const LedgerCounter* a, const LedgerCounter* b) {
            assert(a == b || a->column != b->column);
            return a->column < b->column;
        });
        return listed;
    }();
    return columns;
}

const std::vector<LedgerIdentity>& ledger_identities() {
    static const std::vector<LedgerIdentity> identities = [] {
        std::vector<LedgerIdentity> all;
        for (const IdentityFormula& formula : identity_formulas)
            all.push_back(identity(formula));
        return all;
    }();
    return identities;
}

std::int64_t growth_of(const LedgerCounter& counter, const Ledger& later, const Ledger& earlier) {
    std::uint64_t grown = counter.of(later) - counter.of(earlier);
    if (counter.name == std::string_view("lost"))
        grown += later.datagrams.recovered - earlier.datagrams.recovered;
    return static_cast<std::int64_t>(grown);
}

Ledger operator-(const Ledger& later, const Ledger& earlier) {
    Ledger difference = later;
    for (std::size_t i = 0; i < counters.size(); ++i) {
        std::uint64_t& value = counters[i].in(difference);
        if (counters[i].kind == growth)
            value = static_cast<std::uint64_t>(growth_of(counters[i], later, earlier));
        if (counters[i].kind == at_start) {
            assert(counters[i + 1].kind == at_end);
            value = counters[i + 1].of(earlier);
        }
    }
    difference.count_drops_as_lost();
    return difference;
}

void Ledger::count_drops_as_lost() {
    // Less is missing than before if more arrived than was found missing.
    const auto missing = std::max<std::int64_t>(static_cast<std::int64_t>(datagrams.lost), 0);
    if (static_cast<std::uint64_t>(missing) < dropped()) datagrams.lost = dropped();
}

std::vector<std::string> Ledger::open_identities() const {
    std::vector<std::string> open;
    for (const LedgerIdentity& identity : ledger_identities()) {
        const std::uint64_t difference = sum(*this, identity.left) - sum(*this, identity.right);
        if (difference == 0) continue;
        const std::string_view section = identity.left.front().section;
        const bool mixed = std::any_of(identity.right.begin(), identity.right.end(),
                                       [&](const LedgerTerm& term) { return term.section != section; });
        open.push_back(std::string(identity.name) + ": " + words(*this, identity.left, mixed) + " is not " +
                       words(*this, identity.right, mixed) + " (off by " +
                       std::to_string(static_cast<std::int64_t>(difference)) + ")");
    }
    return open;
}

std::string records_text(const Ledger& run, const config::Configuration& configuration) {
    if (!configuration.listmode.write_coincidences) return counted_text(run.saved_singles.found, "single");
    std::string text = counted_text(run.pairs.prompts_found, "prompt") + ", " +
                       counted_text(run.pairs.delayeds_found, "delayed");
    if (configuration.finds_triples()) {
        text += ", " + counted_text(run.gammas.triples, "triple") + ", " +
                counted_text(run.gammas.delayed, "delayed triple");
    }
    return text;
}

json to_json(const Ledger& ledger) {
    json document = json::object();
    for (const LedgerCounter& counter : counters)
        document[counter.section][counter.name] = counter.of(ledger);
    if (!ledger.loss_known()) document["datagrams"]["lost"] = nullptr;
    document["loss_known"] = ledger.loss_known();
    const auto open = ledger.open_identities();
    document["closed"] = open.empty();
    document["open"] = open;
    return document;
}

}  // namespace petacq::daemon
