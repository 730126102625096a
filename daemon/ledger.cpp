#include "daemon/ledger.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

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

struct Term {
    const char* name;
    std::uint64_t value;
};

/// "name (value) = a (value) + b (value) ..." when the sides differ; nothing when they do not.
/// Sums are taken modulo 2^64, which is enough to tell whether they agree.
void check(std::vector<std::string>& open, const char* what, std::vector<Term> left,
           std::vector<Term> right) {
    const auto sum = [](const std::vector<Term>& terms) {
        std::uint64_t total = 0;
        for (const Term& t : terms)
            total += t.value;
        return total;
    };
    const auto words = [](const std::vector<Term>& terms) {
        std::string text;
        for (const Term& t : terms) {
            // Terms that are zero say nothing, but a side must not be empty.
            if (t.value == 0 && terms.size() > 1) continue;
            if (!text.empty()) text += " + ";
            text += std::string(t.name) + " " + std::to_string(t.value);
        }
        return text.empty() ? std::string("0") : text;
    };
    const std::uint64_t difference = sum(left) - sum(right);
    if (difference == 0) return;
    open.push_back(std::string(what) + ": " + words(left) + " is not " + words(right) + " (off by " +
                   std::to_string(static_cast<std::int64_t>(difference)) + ")");
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

std::vector<std::string> Ledger::open_identities() const {
    std::vector<std::string> open;
    check(open, "datagrams",
          {{"received", datagrams.received}, {"in_flight_at_start", datagrams.in_flight_at_start}},
          {{"in_flight_at_end", datagrams.in_flight_at_end},
           {"accepted", datagrams.accepted},
           {"duplicate", datagrams.duplicate},
           {"malformed", datagrams.malformed},
           {"unknown_source", datagrams.unknown_source},
           {"too_many_sources", datagrams.too_many_sources},
           {"dropped_no_buffer", datagrams.dropped_no_buffer}});
    check(open, "frames handed over",
          {{"datagrams.frames", datagrams.frames},
           {"frames_in_flight_at_start", datagrams.frames_in_flight_at_start}},
          {{"frames.received", frames.received},
           {"frames_in_flight_at_end", datagrams.frames_in_flight_at_end}});
    check(open, "frames", {{"received", frames.received}},
          {{"bad_marker", frames.bad_marker},
           {"bad_address", frames.bad_address},
           {"outside_crystal", frames.outside_crystal},
           {"below_window", frames.below_window},
           {"above_window", frames.above_window},
           {"bad_time", frames.bad_time},
           {"time_jump", frames.time_jump},
           {"late", frames.late},
           {"accepted", frames.accepted}});
    check(open, "accepted singles",
          {{"frames accepted", frames.accepted}, {"pending_at_start", singles.pending_at_start}},
          {{"decided", singles.decided}, {"pending_at_end", singles.pending_at_end}});
    check(open, "decided singles", {{"decided", singles.decided}, {"reused", singles.reused}},
          {{"2 x prompts", 2 * singles.prompts},
           {"unpaired", singles.unpaired},
           {"same_crystal", singles.same_crystal},
           {"geometry", singles.geometry},
           {"in_dropped_multiples", singles.in_dropped_multiples},
           {"in_oversize_multiples", singles.in_oversize_multiples},
           {"unused_in_multiples", singles.unused_in_multiples}});
    check(open, "pairs", {{"prompts_found", pairs.prompts_found}, {"delayeds_found", pairs.delayeds_found}},
          {{"written", pairs.written}, {"write_failed", pairs.write_failed}, {"in_queue", pairs.in_queue}});
    check(open, "saved singles", {{"found", saved_singles.found}},
          {{"written", saved_singles.written},
           {"write_failed", saved_singles.write_failed},
           {"in_queue", saved_singles.in_queue}});
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
