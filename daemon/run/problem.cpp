#include "daemon/run/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

namespace {

struct DetectorAdvice {
    const char* code;
    const char* advice;
    const char* several;  ///< what several BDMs have in common
};
/// In the order of DetectorFault::FaultKind.
constexpr std::array detector_advice{
    DetectorAdvice{"detector_time_step", "check the clock; the run may need another time calibration",
                   "BDMs: their times moved since the start"},
    DetectorAdvice{"detector_gain_step", "check high voltage and temperature",
                   "BDMs: their photopeaks moved since the start"},
    DetectorAdvice{"detector_few_prompts", "check clock, energies and shielding",
                   "BDMs have fewer prompts than their singles let expect"},
    DetectorAdvice{"detector_time_off", "check its clock; the time calibration may no longer hold",
                   "BDMs: their times differ from the reference"},
    DetectorAdvice{"detector_gain_off",
                   "check its high voltage and temperature; the energy calibration may no longer hold",
                   "BDMs: their photopeaks differ from the reference"},
    DetectorAdvice{"detector_prompts_off", "check clock, energies and shielding",
                   "BDMs have fewer prompts than the reference lets expect"},
    DetectorAdvice{"detector_unit_silent", "check power, cables and thresholds",
                   "BDMs have DUs that do not count"},
    DetectorAdvice{"detector_noisy", "raise the threshold of the crystal, or switch it off",
                   "BDMs have noisy crystals"},
    DetectorAdvice{"boards_out_of_step",
                   "petcal apply --bdm-ticks does it; or check the common reset of the boards",
                   "BDMs are out of step with the others"},
    DetectorAdvice{"boards_without_partners", "check the common reset of the boards and its clock",
                   "BDMs have no coincidences with the others at all"},
};

/// Share of copies that no network makes by chance.
constexpr double many_copies = 0.01;
/// Below this share of `fewest_energies` or more in the window, the energies are wrong: a scanner without a
/// source has more there.
constexpr double min_in_window = 0.02;
constexpr std::uint64_t fewest_energies = 2000;

double fraction(std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// "12 datagrams (0.12 %)"
std::string share_text(std::uint64_t n, std::uint64_t of, const char* what) {
    return fmt::format("{} ({:.3g} %)", counted_text(n, what), 100 * fraction(n, of));
}

class LedgerFinder {
  public:
    LedgerFinder(const Ledger& growth, const LedgerView& view) : growth_(growth), view_(view) {}

    std::vector<Problem> find() {
        datagrams();
        frames();
        return std::move(found_);
    }

  private:
    /// `share` of the data that it concerns, where that says something.
    void add(const char* code, std::string what, std::string advice, double share = 0) {
        found_.push_back({code, 0, std::move(what), std::move(advice)});
        found_.back().size = share;
    }

    /// Adds a problem if more than max_fraction of the things are affected.
    void add_share(const char* code, std::uint64_t affected, std::uint64_t all, const char* thing,
                   const std::string& how, const char* advice) {
        constexpr double margin = 0.5;
        const double limit = view_.max_fraction;
        const double share = fraction(affected, all);
        if (affected == 0 || share <= limit * (view_.raised(code) ? margin : 1)) return;
        add(code,
            share_text(affected, all, thing) + how +
                (share > limit ? "" : fmt::format(", not yet below {:.3g} %", 100 * limit * margin)),
            advice, share);
    }

    void datagrams() {
        const DatagramLedger& d = growth_.datagrams;
        // Fewer are missing than before if more arrived than were found missing.
        const std::uint64_t missing = static_cast<std::int64_t>(d.lost) < 0 ? 0 : d.lost;
        // What was dropped here has a reason of its own.
        const std::uint64_t lost = missing - std::min(missing, growth_.dropped());
        const double dropped = fraction(growth_.dropped(), growth_.dropped() + d.received);
        if (growth_.numbered)
            add_share("datagrams_lost", lost, lost + d.received, "datagram", " lost" + view_.lost_by,
                      "check cables, switch and network card, and whether the kernel drops datagrams");
        if (d.repeated > 0) {
            add("stream_repeated",
                counted_text(d.repeated, "datagram") + " received again" + view_.repeated_by,
                "a stream is being sent a second time: find out what sends it; the copies are not used");
        }
        add_share("duplicates_suspected", d.duplicates_suspected, d.accepted, "datagram",
                  " seem to have come twice, and their hits count twice",
                  "capture on one interface instead of any, end the mirrored port, join each multicast group "
                  "once; or a board sends the same data again");
        if (const double copies = fraction(d.duplicate, d.received); copies > many_copies) {
            add("duplicate_datagrams",
                share_text(d.duplicate, d.received, "datagram") + " came more than once",
                "a board that sends twice, two links, a mirror port of the switch, or several sockets in one "
                "multicast group: the copies are not used",
                copies);
        }
        if (d.board_lost > 0) {
            add("board_lost_data",
                counted_text(d.board_lost, "block") + " of data lost in the boards or on the way",
                "the boards say so: lower their rate, raise their thresholds, see their own software; then "
                "check "
                "the network");
        }
        if (growth_.dropped() > 0 && view_.batches_waited) {
            add("no_free_batch",
                counted_text(growth_.dropped(), "datagram") +
                    " dropped: no batch was free, and the socket buffer overflowed",
                "more data arrive than can be processed or written: see stages and queues; a higher "
                "receive.batch_count bridges short spells",
                dropped);
        } else if (d.dropped_kernel > 0) {
            add("kernel_drops",
                "the kernel dropped " + counted_text(d.dropped_kernel, "datagram") +
                    ": the socket buffer overflowed",
                "raise net.core.rmem_max and receive.receive_buffer_bytes, or spread the sources over more "
                "sockets",
                dropped);
        }
        if (d.unknown_source > 0) {
            add("unknown_source",
                counted_text(d.unknown_source, "datagram") + " from unknown senders" + view_.unknown_sender,
                "petctl sources shows them; list boards among the sources of the scanner description, stop "
                "others");
        }
        if (d.too_many_sources > 0 || view_.sources_replaced) {
            add("too_many_sources",
                fmt::format("more than {} senders: {} discarded", SourceTable::max_sources,
                            counted_text(d.too_many_sources, "datagram")),
                "list the sources in the scanner description, so that no others are tracked");
        }
        add_share("malformed_datagrams", d.malformed, d.received, "datagram", " malformed",
                  "check receive.framing, and what else sends to this port");
    }

    void frames() {
        const gpu::FrameCounts& f = growth_.frames;
        add_share("invalid_frames", f.bad_marker + f.bad_address + f.bad_time, f.received, "frame",
                  " invalid" + invalid_kinds(),
                  "check frame.head_marker, frame.tail_marker and the scanner description against the boards "
                  "(petctl doctor)");
        if (f.received == 0 && growth_.tags.received > 0 && view_.frames_wanted) {
            add("only_tags",
                counted_text(growth_.tags.received, "tag") + " and not one frame of a hit arrived",
                "do the boards send their hits with frame.tag_marker? `petctl doctor` tells");
        }
        energies();
        add_share("late_frames", f.late, f.received, "frame", " too late to be paired",
                  "look at the skew of the sources; raise watermark.max_disorder_us if the network reorders "
                  "datagrams");
        add_share("time_jumps", f.time_jump, f.received, "frame", " far from the time of their source",
                  "check the clocks and the common reset of the boards");
        if (view_.gave_up) {
            add("sources_given_up",
                "more than pipeline.max_pending_singles singles waited for slow sources: they wait no longer",
                "find the source that lags; raise pipeline.max_pending_singles to wait longer for it");
        }
    }

    /// Hardly any energy in the window is no energy of a source.
    void energies() {
        const gpu::FrameCounts& f = growth_.frames;
        const std::uint64_t outside = f.below_window + f.above_window;
        const std::uint64_t all = outside + f.accepted;
        const double least = min_in_window * (view_.raised("energies_outside") ? 2 : 1);
        if (!view_.frames_wanted || all < fewest_energies || fraction(f.accepted, all) >= least) return;
        add("energies_outside",
            share_text(outside, all, "hit") +
                fmt::format(" outside the energy window: {:.3g} % below, {:.3g} % above",
                            100 * fraction(f.below_window, all), 100 * fraction(f.above_window, all)),
            "is there a source in the scanner? Then check the gain of the boards, the byte order of their "
            "energies and the energy calibration");
    }

    /// ": 3 with wrong markers, 12 with a BDM, DU, x or y out of range or of another source"
    [[nodiscard]] std::string invalid_kinds() const {
        const gpu::FrameCounts& f = growth_.frames;
        std::string text;
        if (!view_.cause_known) return text;
        const auto say = [&](std::uint64_t count, const char* what) {
            if (count > 0) text += fmt::format("{} {} {}", text.empty() ? ":" : ",", count, what);
        };
        say(f.bad_marker, "with wrong markers");
        say(f.bad_address, "with a BDM, DU, x or y out of range, or a BDM of another source");
        say(f.bad_time, "with a corrected time below 0 or beyond 64 bits");
        return text;
    }

    const Ledger& growth_;
    const LedgerView& view_;
    std::vector<Problem> found_;
};

}  // namespace

Problem source_problem(const SourceTrouble& trouble, std::uint32_t subject, const std::string& name,
                       const std::string& does, double size) {
    Problem problem{trouble.code, subject, "source " + name + " " + does, trouble.advice};
    problem.is_one_of(trouble.several, name, size);
    return problem;
}

Problem sequence_problem(std::uint32_t subject, const std::string& name, const NumberPattern& pattern) {
    Problem problem = source_problem(sequence_meaningless, subject, name, "");
    problem.what = "source " + name + ": " + pattern.text();
    return problem;
}

Problem rate_problem(std::uint32_t subject, const std::string& name, const ClockRate::Wrong& rate) {
    Problem problem = source_problem(source_clock, subject, name, "");
    problem.what = "source " + name + ": " + rate.text();
    return problem;
}

Problem detector_problem(const DetectorFault& fault) {
    const DetectorAdvice& known = detector_advice.at(static_cast<std::size_t>(fault.kind));
    Problem problem{known.code, fault.bdm, fault.text(), known.advice};
    problem.is_one_of(known.several, fmt::to_string(fault.bdm), std::abs(fault.size));
    return problem;
}

std::vector<Problem> find_ledger_problems(const Ledger& growth, const LedgerView& view) {
    return LedgerFinder(growth, view).find();
}

}  // namespace petacq::daemon
