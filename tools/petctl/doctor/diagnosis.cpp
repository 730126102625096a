#include "tools/petctl/doctor/diagnosis.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "tools/petctl/doctor/source_list.hpp"
#include "tools/petctl/sources.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using daemon::Finding;
using daemon::Findings;
using daemon::Level;
using nlohmann::json;

namespace {

/// Clocks of boards and of a host agree far better; a tick that is wrong by a factor does not.
constexpr double clock_tolerance = 0.02;
/// Without a calibration the photopeak is anywhere.
constexpr double lowest_peak_keV = 511 * 0.85;   // NOLINT(readability-identifier-naming): the unit's spelling
constexpr double highest_peak_keV = 511 * 1.15;  // NOLINT(readability-identifier-naming)
/// A share of the frames that is worth a word.
constexpr double much = 0.01;
constexpr std::size_t most_named = 12;

double number(const json& value) {
    return value.is_number() ? value.get<double>() : 0;
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), most_named); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > most_named) text += fmt::format(" and {} more", names.size() - most_named);
    return text;
}

template <class Numbers>
std::string numbers_text(const Numbers& numbers) {
    std::vector<std::string> names;
    for (const auto n : numbers)
        names.push_back(std::to_string(n));
    return joined(names);
}

const json& list(const json& document, std::initializer_list<const char*> path) {
    static const json empty = json::array();
    const json& found = at(document, path);
    return found.is_array() ? found : empty;
}

class Doctor {
  public:
    Doctor(const json& before, const json& after, const std::set<Sample>& samples)
        : before_(before),
          after_(after),
          seen_(
              impression_of(samples, static_cast<unsigned>(number(at(after, {"reception", "tag_marker"}))))),
          foreign_(!text("layout").empty()) {}

    Diagnosis diagnose() {
        if (!check_arrival()) return std::move(diagnosis_);
        check_senders();
        if (foreign_) {
            add(Level::note, "framing",
                "frames of the layout " + text("layout") + ": framing and markers are its own");
        } else {
            check_framing();
            check_markers();
        }
        check_modules();
        check_times();
        check_frames();
        check_energies();
        return std::move(diagnosis_);
    }

  private:
    void add(Level level, const char* subject, const std::string& text, const std::string& fix = "") {
        diagnosis_.findings.push_back({level, subject, text, fix});
    }
    void write(const char* file, const std::string& piece) {
        diagnosis_.to_write += fmt::format("In {}:\n{}\n", file, piece);
    }
    [[nodiscard]] std::string text(const char* key) const {
        const json& value = at(after_, {"reception", key});
        return value.is_string() ? value.get<std::string>() : "";
    }
    /// What a counter of the ledger since the start has gained.
    [[nodiscard]] double gained(const char* section, const char* counter) const {
        return number(at(after_, {"total", section, counter})) -
               number(at(before_, {"total", section, counter}));
    }
    [[nodiscard]] double seconds() const {
        return number(at(after_, {"uptime_s"})) - number(at(before_, {"uptime_s"}));
    }

    /// False if there is nothing to look at.
    bool check_arrival() {
        std::vector<std::string> where;
        for (const json& socket : list(after_, {"sockets"}))
            where.push_back(
                fmt::format("{}:{}", text_of(at(socket, {"address"})), at(socket, {"port"}).dump()));
        const double datagrams = gained("datagrams", "received");
        const std::string port = where.empty() ? "" : where.front().substr(where.front().rfind(':') + 1);
        if (datagrams <= 0) {
            add(Level::problem, "arriving",
                fmt::format("nothing in {:.1f} s at {}", seconds(), joined(where)),
                fmt::format("Are the boards on, and their links up (ip -brief link)? sudo tcpdump -ni any -c "
                            "5 udp port {} "
                            "shows whether datagrams reach this host. If it shows some: is their destination "
                            "one of ip "
                            "-brief address, and does the firewall let them pass (sudo nft list ruleset)? If "
                            "not: the "
                            "destination that the boards are set to, cables, switch",
                            port));
            return false;
        }
        add(Level::good, "arriving",
            fmt::format("{:.4g} datagrams/s, {} B/s, datagrams of {} B", datagrams / seconds(),
                        scaled(at(after_, {"rates", "bytes_per_s"}), ""), numbers_text(seen_.sizes)));
        const double dropped = gained("datagrams", "dropped_kernel");
        if (dropped > 0) {
            add(Level::warning, "arriving", fmt::format("the kernel dropped {:.0f} datagrams", dropped),
                "petacqd --check tells whether the socket buffers are as large as configured");
        }
        return true;
    }

    void check_senders() {
        std::vector<std::string> known;
        std::vector<std::string> silent;
        for (const json& source : list(after_, {"sources"})) {
            const json& id = at(source, {"id"});
            const std::string address = text_of(at(source, {"address"}));
            const std::string name =
                id.is_null() ? address : fmt::format("source {} ({})", id.dump(), address);
            const json& last = at(source, {"last_seen_s"});
            if (last.is_number() && last < seconds()) {
                known.push_back(name);
            } else {
                silent.push_back(id.is_null() ? address : "source " + id.dump());
            }
        }
        if (!known.empty()) add(Level::good, "from", joined(known));
        if (!silent.empty()) {
            add(Level::warning, "from",
                "nothing from " + joined(silent) + ", which the scanner description lists",
                "their power, cable and destination; or remove them from sources");
        }
        std::vector<std::string> unknown;
        for (const json& stranger : list(after_, {"unknown_sources"})) {
            if (number(at(stranger, {"last_seen_s"})) > seconds()) continue;
            const json& id = at(stranger, {"id"});
            const std::string address = text_of(at(stranger, {"address"}));
            unknown.push_back(id.is_null() ? address : fmt::format("source {} ({})", id.dump(), address));
        }
        if (unknown.empty()) return;
        add(Level::problem, "from", "may not send, and is not used: " + joined(unknown),
            "if it is a board, list it in the scanner description as below; otherwise stop it");
        list_of_sources_ = true;
    }

    void check_framing() {
        const std::string expected = text("framing");
        if (!seen_.framing) {
            add(seen_.samples == 0 ? Level::note : Level::problem, "framing",
                seen_.samples == 0 ? "no datagram was sampled"
                                   : "these are not petacqd's frames: neither sequenced nor bare",
                seen_.samples == 0
                    ? ""
                    : "describe the format of the boards (receive.layout; docs/reference/layout.md)");
            return;
        }
        const std::string found = name_of(*seen_.framing);
        if (found == expected) return add(Level::good, "framing", found + ", as configured");
        add(Level::problem, "framing",
            fmt::format("{}, while {} is configured: the datagrams are malformed", found, expected),
            "write the framing as below, and restart the daemon");
        write("petacqd.json", fmt::format(R"(    "receive": {{"framing": "{}"}})", found));
        list_of_sources_ = true;
    }

    void check_markers() {
        if (!seen_.framing) return;
        const Markers expected{static_cast<unsigned>(number(at(after_, {"reception", "head_marker"}))),
                               static_cast<unsigned>(number(at(after_, {"reception", "tail_marker"})))};
        if (!seen_.markers) {
            return add(Level::problem, "markers",
                       "the frames have no constant markers: the boards may send another format",
                       "compare a frame with docs/reference/wire-format.md, or describe the format "
                       "(receive.layout)");
        }
        const auto in_words = [](const Markers& m) {
            return fmt::format("head {}, tail {}", m.head, m.tail);
        };
        if (*seen_.markers == expected)
            return add(Level::good, "markers", in_words(expected) + ", as configured");
        const bool swapped = *seen_.markers == Markers{expected.tail, expected.head};
        add(Level::problem, "markers",
            fmt::format("{}, while {} is configured{}", in_words(*seen_.markers), in_words(expected),
                        swapped ? ": head and tail are swapped" : ""),
            "correct the boards, or write the markers as below and restart the daemon");
        write("petacqd.json", fmt::format(R"(    "frame": {{"head_marker": {}, "tail_marker": {}}})",
                                          seen_.markers->head, seen_.markers->tail));
    }

    /// What a source or a sample says about modules, against the scanner description.
    void check_modules() {
        const std::size_t count = list(after_, {"modules"}).size();
        std::vector<std::string> beyond;
        std::vector<std::string> misplaced;
        for (const auto& [name, sender] : seen_.senders) {
            const json* const entry = listed(name);
            for (const unsigned bdm : sender.modules) {
                const std::string who = name.second ? fmt::format("{} of source {}", bdm, *name.second)
                                                    : fmt::format("{} of {}", bdm, name.first);
                if (bdm >= count) {
                    beyond.push_back(who);
                } else if (entry != nullptr && !contains(at(*entry, {"bdms"}), bdm)) {
                    misplaced.push_back(who);
                }
            }
        }
        if (!beyond.empty()) {
            add(Level::problem, "modules",
                fmt::format("BDM {}: the scanner description has BDM 0 to {}", joined(beyond), count - 1),
                "correct the BDM number in the board, or geometry of the scanner description");
        }
        if (!misplaced.empty()) {
            add(Level::problem, "modules",
                fmt::format("BDM {}: the scanner description lists them for another source",
                            joined(misplaced)),
                "correct bdms of the sources as below");
            list_of_sources_ = true;
        }
        std::vector<std::string> missing;
        for (const json& module : list(after_, {"modules"})) {
            if (number(at(module, {"singles_per_s"})) > 0) continue;
            missing.push_back(at(module, {"bdm"}).dump());
        }
        if (missing.empty()) {
            add(Level::good, "modules", fmt::format("singles from all {} BDMs", count));
        } else if (missing.size() == count) {
            add(Level::problem, "modules", "no BDM has singles",
                "put right what is named above and below first");
        } else {
            add(Level::warning, "modules", fmt::format("no singles from BDM {}", joined(missing)),
                "their power, cables and thresholds; is the number of the BDM set in its board?");
        }
        write_sources();
    }

    [[nodiscard]] const json* listed(const SenderName& name) const {
        for (const json& entry : list(after_, {"reception", "listed"})) {
            const json& id = at(entry, {"id"});
            if (name.second ? id == *name.second : at(entry, {"address"}) == name.first) return &entry;
        }
        return nullptr;
    }

    /// Whether "0-5,7" has the number.
    static bool contains(const json& ranges, unsigned wanted) {
        if (!ranges.is_string()) return false;
        const auto numbers = numbers_in(ranges.get_ref<const std::string&>());
        return std::find(numbers.begin(), numbers.end(), wanted) != numbers.end();
    }

    void write_sources() {
        if (!list_of_sources_) return;
        const bool understood = !seen_.framing || name_of(*seen_.framing) == text("framing");
        write(understood
                  ? "the scanner description (bdms: seen so far)"
                  : "the scanner description (bdms: of a few samples; petctl sources has all of them when "
                    "the framing is right)",
              "    \"sources\": " + (understood ? heard_sources(after_, seen_) : sampled_sources(seen_)));
    }

    void check_times() {
        const double tick_ps = number(at(after_, {"common", "tick_ps"}));
        std::vector<std::string> standing;
        std::vector<std::string> off;
        std::vector<double> ticks;
        std::size_t good = 0;
        for (const auto& [name, sender] : seen_.senders) {
            if (!sender.ticks_per_s) continue;
            const std::string who = name.second ? fmt::format("source {}", *name.second) : name.first;
            if (*sender.ticks_per_s <= 0) {
                standing.push_back(who);
                continue;
            }
            const double found = 1e12 / *sender.ticks_per_s;
            if (std::abs(found / tick_ps - 1) <= clock_tolerance) {
                ++good;
            } else {
                off.push_back(who);
                ticks.push_back(found);
            }
        }
        if (good > 0 && off.empty())
            add(Level::good, "times",
                fmt::format("of {} sender{} increase, with ticks of {:.6g} ps by the host's clock", good,
                            good == 1 ? "" : "s", tick_ps));
        if (!standing.empty()) {
            add(Level::problem, "times", "do not increase: " + joined(standing),
                "the clock of the board; or its frames have another format (docs/reference/wire-format.md)");
        }
        if (off.empty()) return;
        std::nth_element(ticks.begin(), ticks.begin() + static_cast<std::ptrdiff_t>(ticks.size() / 2),
                         ticks.end());
        const double tick = ticks[ticks.size() / 2];
        add(Level::problem, "times",
            fmt::format("a tick lasts about {:.4g} ps by the host's clock, {:.6g} ps according to the "
                        "scanner description: {}",
                        tick, tick_ps, joined(off)),
            good == 0 ? "see the exact tick in the manual of the boards, and write it as below"
                      : "the clocks of these boards");
        if (good == 0) write("the scanner description", fmt::format("    \"tick_ps\": {:.4g}", tick));
    }

    void check_frames() {
        const double frames = gained("frames", "received");
        const auto complain = [&](const char* counter, const char* what, const char* fix) {
            const double share = frames > 0 ? gained("frames", counter) / frames : 0;
            if (share <= much) return;
            add(share > 0.5 ? Level::problem : Level::warning, "frames",
                fmt::format("{:.3g} % {}", 100 * share, what), fix);
        };
        complain("bad_marker", "have wrong markers", "frame.head_marker, frame.tail_marker; corrupted data");
        complain("bad_address", "have a BDM, DU, x or y out of range",
                 "geometry of the scanner description; the numbers in the boards");
        complain("time_jump", "have times far from those of their source",
                 "clock and common reset of the boards");
        complain("late", "come too late to be paired",
                 "reset all boards together; watermark.max_disorder_us");
        complain("outside_crystal", "lie outside every crystal",
                 "the position table of the calibration: petcal derive crystals");
    }

    void check_energies() {
        std::vector<double> peaks;
        for (const json& module : list(after_, {"modules"})) {
            const json& peak = at(module, {"peak_keV"});
            if (number(at(module, {"singles_per_s"})) > 0 && peak.is_number()) peaks.push_back(peak);
        }
        if (peaks.empty()) return;
        const auto in_peak = [](double peak) { return peak >= lowest_peak_keV && peak <= highest_peak_keV; };
        const auto good = static_cast<std::size_t>(std::count_if(peaks.begin(), peaks.end(), in_peak));
        if (good == peaks.size())
            return add(Level::good, "energies",
                       fmt::format("the fullest energy of all {} BDMs with singles is near 511 keV", good));
        std::nth_element(peaks.begin(), peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() / 2),
                         peaks.end());
        add(Level::warning, "energies",
            fmt::format("the fullest energy of {} of {} BDMs is not near 511 keV (in the middle {:.0f} keV)",
                        peaks.size() - good, peaks.size(), peaks[peaks.size() / 2]),
            "is there a positron source? Then the energy calibration: petcal derive energy");
    }

    const json& before_;
    const json& after_;
    const Impression seen_;
    const bool foreign_;
    bool list_of_sources_ = false;
    Diagnosis diagnosis_;
};

}  // namespace

Diagnosis diagnose(const json& before, const json& after, const std::set<Sample>& samples) {
    return Doctor(before, after, samples).diagnose();
}

}  // namespace petacq::petctl
