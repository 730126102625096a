// Source ids and sequence numbers: who is who, and what is lost.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/doctor/arrangement.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

constexpr std::size_t fewest_readings = 3;
constexpr std::uint64_t longest_step = 1U << 16;
/// By how much a number grows from a datagram to the next in most cases; 0: by no constant small step.
std::uint64_t usual_step(const std::vector<NumberReading>& readings, const Arrangement& arrangement) {
    std::map<std::uint64_t, std::size_t> counts;
    std::size_t all = 0;
    for (const NumberReading& one : readings) {
        // The same once more is a datagram that was sent twice.
        if (!one.next || *one.next == one.number) continue;
        ++counts[arrangement.value(*one.next) - arrangement.value(one.number)];
        ++all;
    }
    for (const auto& [step, count] : counts)
        if (2 * count > all && all >= fewest_readings && step < longest_step) return step;
    return 0;
}

/// Whether the numbers count frames: they grow by as many as the datagram has.
bool counts_frames(const std::vector<NumberReading>& readings) {
    std::size_t as_frames = 0;
    std::size_t all = 0;
    for (const NumberReading& one : readings) {
        if (!one.next || *one.next == one.number) continue;
        ++all;
        as_frames += one.frames > 1 && *one.next - one.number == one.frames ? 1 : 0;
    }
    return all >= fewest_readings && 2 * as_frames > all;
}

/// What is wrong with the numbers of a sender; "" if nothing is known to be.
std::string fault_of(const std::vector<NumberReading>& readings) {
    if (readings.size() < fewest_readings) return "";
    const auto same = [&](const NumberReading& one) {
        return one.number == readings.front().number && one.next.value_or(one.number) == one.number;
    };
    if (std::all_of(readings.begin(), readings.end(), same))
        return fmt::format("stands still at {}", readings.front().number);
    if (counts_frames(readings)) return "counts frames: it grows by the number of frames in the datagram";
    for (const Arrangement& arrangement : arrangements) {
        const std::uint64_t step = usual_step(readings, arrangement);
        if (step == 0) continue;
        const std::string order = arrangement.text;
        const std::string steps = step == 1 ? "" : fmt::format("grows in steps of {}", step);
        if (order.empty()) return steps;
        return "is sent with " + order + (steps.empty() ? "" : ", and " + steps);
    }
    std::size_t back = 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < readings.size(); ++i) {
        largest = std::max(largest, readings[i].number);
        back += i > 0 && readings[i].number < readings[i - 1].number ? 1 : 0;
    }
    const bool paired = std::any_of(readings.begin(), readings.end(), [](const auto& r) { return r.next; });
    if (back >= 2 && paired) return fmt::format("goes back again and again, and stays below {}", largest + 1);
    return "";
}

/// Of the senders with an id, the readings from each of its addresses.
std::map<unsigned, std::vector<const std::pair<const SenderName, Sender>*>> by_id(const Impression& seen) {
    std::map<unsigned, std::vector<const std::pair<const SenderName, Sender>*>> ids;
    for (const auto& sender : seen.senders)
        if (sender.first.second) ids[*sender.first.second].push_back(&sender);
    return ids;
}

/// Whether datagrams of both came in turn: a board that starts anew at another port does not go back.
bool in_turn(const Sender& a, const Sender& b) {
    if (a.numbers.empty() || b.numbers.empty()) return false;
    return a.numbers.front().arrived_s < b.numbers.back().arrived_s &&
           b.numbers.front().arrived_s < a.numbers.back().arrived_s;
}

bool disjoint(const std::set<unsigned>& a, const std::set<unsigned>& b) {
    return std::none_of(a.begin(), a.end(), [&](unsigned n) { return b.contains(n); });
}

/// "every 3rd": a remainder of the numbers that never arrives.
bool every_nth(const Impression& seen, std::uint64_t n) {
    if (n < 2) return false;
    for (const auto& [name, sender] : seen.senders) {
        std::set<std::uint64_t> remainders;
        std::size_t count = 0;
        for (const NumberReading& one : sender.numbers) {
            remainders.insert(one.number % n);
            if (one.next) remainders.insert(*one.next % n);
            count += one.next ? 2 : 1;
        }
        constexpr double by_chance = 1e-3;
        const auto parts = static_cast<double>(n);
        if (remainders.size() < n && parts * std::pow(1 - 1 / parts, count) < by_chance) return true;
    }
    return false;
}

/// How the losses lie in time.
std::string pattern_of(const Evidence& evidence, double lost, double received) {
    const auto n = static_cast<std::uint64_t>(std::lround((lost + received) / lost));
    if (every_nth(evidence.seen, n))
        return n == 2 ? ": every second one is missing" : fmt::format(": one of every {} is missing", n);
    if (evidence.lost.size() < 3) return "";
    const double most = *std::max_element(evidence.lost.begin(), evidence.lost.end());
    const auto quiet = std::count_if(evidence.lost.begin(), evidence.lost.end(),
                                     [&](double second) { return second < most / 10; });
    return 2 * static_cast<std::size_t>(quiet) > evidence.lost.size() ? ", in bursts" : ", evenly";
}

}  // namespace

std::set<unsigned> judge_ids(const Evidence& evidence, Diagnosis& diagnosis) {
    const double received = evidence.gained("datagrams", "received");
    const auto share = [&](const char* counter) {
        return received > 0 ? evidence.gained("datagrams", counter) / received : 0;
    };
    std::set<unsigned> found;
    for (const auto& [id, senders] : by_id(evidence.seen)) {
        std::set<std::string> addresses;
        std::vector<std::string> texts;
        std::set<unsigned> modules;
        bool different = false;
        for (const auto* a : senders) {
            for (const auto* b : senders) {
                if (a == b || !in_turn(a->second, b->second)) continue;
                different = different || (!a->second.modules.empty() && !b->second.modules.empty() &&
                                          disjoint(a->second.modules, b->second.modules));
                if (!addresses.insert(a->first.first).second) continue;
                texts.push_back(fmt::format("{} with BDM {}", a->first.first, ranges(a->second.modules)));
                modules.insert(a->second.modules.begin(), a->second.modules.end());
            }
        }
        const bool disturbed =
            share("stray") + share("lost") + share("repeated") > much || share("duplicate") > much;
        // The same datagrams over two links are copies; boards have numbers of their own.
        const bool copies = share("duplicate") > 0.25 && !different;
        if (addresses.size() < 2 || copies || !(different || disturbed)) continue;
        found.insert(id);
        std::vector<std::string> silent;
        for (const json& source : list(evidence.after, {"reception", "listed"})) {
            const json& other = at(source, {"id"});
            if (!other.is_number_unsigned() || other == id) continue;
            const std::set<unsigned> own = bdms_of(source);
            if (!disjoint(own, modules)) silent.push_back(fmt::format("source {}", other.dump()));
        }
        diagnosis.add(
            Level::problem, "from",
            fmt::format("{} boards ({}) send as source {}: {}", addresses.size(),
                        joined({addresses.begin(), addresses.end()}), id, joined(texts)),
            "give each board a source id of its own (bytes 6 and 7 of its header)" +
                (silent.empty() ? std::string() : "; by these BDMs one of them is " + joined(silent)));
    }
    return found;
}

bool judge_numbers(const Evidence& evidence, Diagnosis& diagnosis) {
    std::size_t good = 0;
    bool any_fault = false;
    for (const auto& [name, sender] : evidence.seen.senders) {
        if (!name.second) continue;
        const std::string fault = fault_of(sender.numbers);
        if (fault.empty()) {
            good += usual_step(sender.numbers, arrangements.front()) == 1 ? 1 : 0;
            continue;
        }
        any_fault = true;
        diagnosis.add(
            Level::problem, "numbers",
            fmt::format("the sequence number of {} {}: its loss is unknown", sender_name(name), fault),
            "it must grow by 1 with each datagram, in bytes 8 to 15 of the header, the most "
            "significant first");
    }
    if (good > 0) {
        diagnosis.add(
            Level::good, "numbers",
            fmt::format("of {} grow by 1 with each datagram", daemon::counted_text(good, "sender")));
    }
    return any_fault;
}

void judge_loss(const Evidence& evidence, bool explained, Diagnosis& diagnosis) {
    const double received = evidence.gained("datagrams", "received");
    if (received <= 0) return;
    const double lost = evidence.gained("datagrams", "lost");
    const double copies = evidence.gained("datagrams", "duplicate");
    const double repeated = evidence.gained("datagrams", "repeated");
    const double stray = evidence.gained("datagrams", "stray");
    if (lost > 0) {
        const double share = lost / (lost + received);
        diagnosis.add(
            share > much ? Level::problem : Level::warning, "loss",
            fmt::format("{:.0f} datagrams lost, {:.3g} %{}", lost, 100 * share,
                        pattern_of(evidence, lost, received)),
            evidence.gained("datagrams", "dropped_kernel") > 0
                ? "the host is too slow or its socket buffer too small: petacqd --check"
                : "evenly or in bursts: cable, switch, or a network card that drops (ethtool -S); "
                  "every nth: the board sends one of them elsewhere, or counts it without sending it");
    }
    if (copies > much * received) {
        const double share = copies / received;
        diagnosis.add(
            Level::problem, "loss",
            fmt::format("{:.3g} % of the datagrams are duplicates{}: {}", 100 * share,
                        share > 0.45 && share < 0.55 ? ", each one comes twice" : "",
                        "sent or delivered more than once"),
            "does the board send twice, do two links or a mirror port of the switch lead here, or have "
            "several sockets joined one multicast group? Copies are counted and not used");
    }
    if (const double suspected = evidence.gained("datagrams", "duplicates_suspected");
        suspected > much * received) {
        diagnosis.add(
            Level::problem, "loss",
            fmt::format("{:.3g} % of the datagrams seem to have come twice{}: with the same frames, from the "
                        "same sender",
                        100 * suspected / received,
                        std::abs(suspected / received - 0.5) < 0.05 ? ", each one does" : ""),
            "does the board send twice, do two links or a mirror port of the switch lead here, or have "
            "several sockets joined one multicast group? Without sequence numbers copies are used, and hits "
            "count twice");
    }
    if (repeated > much * received) {
        diagnosis.add(Level::problem, "loss",
                      fmt::format("{:.0f} datagrams are of an earlier stream, sent again", repeated),
                      "find out what sends it");
    }
    if (stray > much * received && !explained) {
        diagnosis.add(
            Level::problem, "loss",
            fmt::format("{:.3g} % of the datagrams have a sequence number far from the others of their "
                        "source",
                        100 * stray / received),
            "two boards with one id? Listen longer (--seconds)");
    }
}

}  // namespace petacq::petctl
