#include "daemon/ledger.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// One counter: arithmetic and JSON go over the table of all of them.
struct Field {
    const char* section;
    const char* name;
    std::uint64_t& (*of)(Ledger&);
};

#define PETACQ_FIELD(section, name)                                                  \
    Field {                                                                          \
#section, #name, [](Ledger & l) -> std::uint64_t& { return l.section.name; } \
    }
constexpr std::array fields{
    PETACQ_FIELD(datagrams, received),
    PETACQ_FIELD(datagrams, accepted),
    PETACQ_FIELD(datagrams, duplicate),
    PETACQ_FIELD(datagrams, malformed),
    PETACQ_FIELD(datagrams, unknown_source),
    PETACQ_FIELD(datagrams, too_many_sources),
    PETACQ_FIELD(datagrams, dropped_no_buffer),
    PETACQ_FIELD(datagrams, in_flight_at_start),
    PETACQ_FIELD(datagrams, in_flight_at_end),
    PETACQ_FIELD(datagrams, frames),
    PETACQ_FIELD(datagrams, frames_in_flight_at_start),
    PETACQ_FIELD(datagrams, frames_in_flight_at_end),
    PETACQ_FIELD(datagrams, lost),
    PETACQ_FIELD(datagrams, dropped_kernel),
    PETACQ_FIELD(datagrams, discarded_backlog),
    PETACQ_FIELD(datagrams, reordered),
    PETACQ_FIELD(datagrams, stray),
    PETACQ_FIELD(datagrams, restarted),
    PETACQ_FIELD(datagrams, end_of_stream),
    PETACQ_FIELD(frames, received),
    PETACQ_FIELD(frames, bad_marker),
    PETACQ_FIELD(frames, bad_address),
    PETACQ_FIELD(frames, outside_crystal),
    PETACQ_FIELD(frames, below_window),
    PETACQ_FIELD(frames, above_window),
    PETACQ_FIELD(frames, bad_time),
    PETACQ_FIELD(frames, time_jump),
    PETACQ_FIELD(frames, late),
    PETACQ_FIELD(frames, accepted),
    PETACQ_FIELD(singles, decided),
    PETACQ_FIELD(singles, prompts),
    PETACQ_FIELD(singles, delayeds),
    PETACQ_FIELD(singles, unpaired),
    PETACQ_FIELD(singles, same_crystal),
    PETACQ_FIELD(singles, geometry),
    PETACQ_FIELD(singles, in_dropped_multiples),
    PETACQ_FIELD(singles, in_oversize_multiples),
    PETACQ_FIELD(singles, unused_in_multiples),
    PETACQ_FIELD(singles, reused),
    PETACQ_FIELD(singles, pending_at_start),
    PETACQ_FIELD(singles, pending_at_end),
    PETACQ_FIELD(pairs, prompts_found),
    PETACQ_FIELD(pairs, delayeds_found),
    PETACQ_FIELD(pairs, written),
    PETACQ_FIELD(pairs, write_failed),
    PETACQ_FIELD(pairs, in_queue),
    PETACQ_FIELD(saved_singles, found),
    PETACQ_FIELD(saved_singles, written),
    PETACQ_FIELD(saved_singles, write_failed),
    PETACQ_FIELD(saved_singles, in_queue),
};
#undef PETACQ_FIELD
static_assert(sizeof(Ledger) == fields.size() * sizeof(std::uint64_t) + sizeof(std::uint64_t),
              "every counter stands in the table; loss_known takes the last word");

/// "a 1 + 2 x b 3"; terms that are zero say nothing, but a side must not be empty.
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

Ledger& Ledger::operator+=(const Ledger& later) {
    Ledger next = later;
    const std::uint64_t pending_at_start = singles.pending_at_start;
    const std::uint64_t in_flight_at_start = datagrams.in_flight_at_start;
    const std::uint64_t frames_in_flight_at_start = datagrams.frames_in_flight_at_start;
    for (const Field& f : fields)
        f.of(*this) += f.of(next);
    singles.pending_at_start = pending_at_start;
    singles.pending_at_end = later.singles.pending_at_end;
    datagrams.in_flight_at_start = in_flight_at_start;
    datagrams.in_flight_at_end = later.datagrams.in_flight_at_end;
    datagrams.frames_in_flight_at_start = frames_in_flight_at_start;
    datagrams.frames_in_flight_at_end = later.datagrams.frames_in_flight_at_end;
    loss_known = loss_known && later.loss_known;
    return *this;
}

Ledger operator-(const Ledger& later, const Ledger& earlier) {
    Ledger difference = later;
    Ledger start = earlier;
    for (const Field& f : fields)
        f.of(difference) -= f.of(start);
    if (later.datagrams.lost < earlier.datagrams.lost) difference.datagrams.lost = 0;
    difference.singles.pending_at_start = earlier.singles.pending_at_end;
    difference.singles.pending_at_end = later.singles.pending_at_end;
    difference.datagrams.in_flight_at_start = earlier.datagrams.in_flight_at_end;
    difference.datagrams.in_flight_at_end = later.datagrams.in_flight_at_end;
    difference.datagrams.frames_in_flight_at_start = earlier.datagrams.frames_in_flight_at_end;
    difference.datagrams.frames_in_flight_at_end = later.datagrams.frames_in_flight_at_end;
    difference.pairs.in_queue = later.pairs.in_queue;
    difference.saved_singles.in_queue = later.saved_singles.in_queue;
    return difference;
}

#define PETACQ_TERM(section, name, times)                                                       \
    LedgerTerm {                                                                                \
#section, #name, times, [](const Ledger& l) -> std::uint64_t { return l.section.name; } \
    }
const std::vector<LedgerIdentity>& ledger_identities() {
    static const std::vector<LedgerIdentity> identities{
        {"datagrams",
         {PETACQ_TERM(datagrams, received, 1), PETACQ_TERM(datagrams, in_flight_at_start, 1)},
         {PETACQ_TERM(datagrams, in_flight_at_end, 1), PETACQ_TERM(datagrams, accepted, 1),
          PETACQ_TERM(datagrams, duplicate, 1), PETACQ_TERM(datagrams, malformed, 1),
          PETACQ_TERM(datagrams, unknown_source, 1), PETACQ_TERM(datagrams, too_many_sources, 1),
          PETACQ_TERM(datagrams, dropped_no_buffer, 1)}},
        {"frames handed over",
         {PETACQ_TERM(datagrams, frames, 1), PETACQ_TERM(datagrams, frames_in_flight_at_start, 1)},
         {PETACQ_TERM(frames, received, 1), PETACQ_TERM(datagrams, frames_in_flight_at_end, 1)}},
        {"frames",
         {PETACQ_TERM(frames, received, 1)},
         {PETACQ_TERM(frames, bad_marker, 1), PETACQ_TERM(frames, bad_address, 1),
          PETACQ_TERM(frames, outside_crystal, 1), PETACQ_TERM(frames, below_window, 1),
          PETACQ_TERM(frames, above_window, 1), PETACQ_TERM(frames, bad_time, 1),
          PETACQ_TERM(frames, time_jump, 1), PETACQ_TERM(frames, late, 1), PETACQ_TERM(frames, accepted, 1)}},
        {"accepted singles",
         {PETACQ_TERM(frames, accepted, 1), PETACQ_TERM(singles, pending_at_start, 1)},
         {PETACQ_TERM(singles, decided, 1), PETACQ_TERM(singles, pending_at_end, 1)}},
        {"decided singles",
         {PETACQ_TERM(singles, decided, 1), PETACQ_TERM(singles, reused, 1)},
         {PETACQ_TERM(singles, prompts, 2), PETACQ_TERM(singles, unpaired, 1),
          PETACQ_TERM(singles, same_crystal, 1), PETACQ_TERM(singles, geometry, 1),
          PETACQ_TERM(singles, in_dropped_multiples, 1), PETACQ_TERM(singles, in_oversize_multiples, 1),
          PETACQ_TERM(singles, unused_in_multiples, 1)}},
        {"pairs",
         {PETACQ_TERM(pairs, prompts_found, 1), PETACQ_TERM(pairs, delayeds_found, 1)},
         {PETACQ_TERM(pairs, written, 1), PETACQ_TERM(pairs, write_failed, 1),
          PETACQ_TERM(pairs, in_queue, 1)}},
        {"saved singles",
         {PETACQ_TERM(saved_singles, found, 1)},
         {PETACQ_TERM(saved_singles, written, 1), PETACQ_TERM(saved_singles, write_failed, 1),
          PETACQ_TERM(saved_singles, in_queue, 1)}},
    };
    return identities;
}
#undef PETACQ_TERM

std::vector<std::string> Ledger::open_identities() const {
    std::vector<std::string> open;
    for (const LedgerIdentity& identity : ledger_identities()) {
        // Modulo 2^64, which is enough to tell whether the sides agree.
        const auto sum = [this](const std::vector<LedgerTerm>& terms) {
            std::uint64_t total = 0;
            for (const LedgerTerm& term : terms)
                total += term.times * term.of(*this);
            return total;
        };
        const std::uint64_t difference = sum(identity.left) - sum(identity.right);
        if (difference == 0) continue;
        const std::string_view section = identity.left.front().section;
        const bool mixed =
            std::any_of(identity.right.begin(), identity.right.end(),
                        [&](const LedgerTerm& term) { return std::string_view(term.section) != section; });
        open.push_back(std::string(identity.name) + ": " + words(*this, identity.left, mixed) + " is not " +
                       words(*this, identity.right, mixed) + " (off by " +
                       std::to_string(static_cast<std::int64_t>(difference)) + ")");
    }
    return open;
}

json to_json(const Ledger& ledger) {
    Ledger copy = ledger;
    json document = json::object();
    for (const Field& f : fields)
        document[f.section][f.name] = f.of(copy);
    if (!ledger.loss_known) document["datagrams"]["lost"] = nullptr;
    document["loss_known"] = ledger.loss_known;
    const auto open = ledger.open_identities();
    document["closed"] = open.empty();
    document["open"] = open;
    return document;
}

Ledger ledger_from_json(const json& document) {
    const auto fail = [](const std::string& path, const char* expected) {
        throw std::runtime_error("ledger: " + path + ": expected " + expected);
    };
    if (!document.is_object()) fail("/", "an object");
    Ledger ledger;
    const auto known = document.find("loss_known");
    if (known == document.end() || !known->is_boolean()) fail("/loss_known", "true or false");
    ledger.loss_known = known->get<bool>();
    for (const Field& f : fields) {
        std::uint64_t& value = f.of(ledger);
        const std::string path = std::string("/") + f.section + "/" + f.name;
        const auto section = document.find(f.section);
        if (section == document.end() || !section->is_object())
            fail(std::string("/") + f.section, "an object");
        const auto found = section->find(f.name);
        if (found == section->end()) fail(path, "a count");
        if (&value == &ledger.datagrams.lost && !ledger.loss_known) {
            if (!found->is_null()) fail(path, "null (loss is not known)");
            continue;
        }
        // is_number_unsigned is only set for parsed numbers and unsigned values; a small signed one is as
        // good.
        if (!found->is_number_unsigned() &&
            !(found->is_number_integer() && found->get<std::int64_t>() >= 0)) {
            fail(path, "a count");
        }
        value = found->get<std::uint64_t>();
    }
    return ledger;
}

}  // namespace petacq::daemon
