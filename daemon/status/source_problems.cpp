// What is wrong with single sources.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "config/median.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/problems.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

namespace {

class SourceFinder {
  public:
    explicit SourceFinder(const Observation& seen)
        : seen_(seen), acquisition_(*seen.now->acquisition), acquisition_before_(*seen.before->acquisition) {}

    std::vector<Problem> find() {
        find_the_wrong();
        for (std::uint32_t i = 0; i < acquisition_.sources.sources.size(); ++i)
            source(i);
        return std::move(found_);
    }

  private:
    /// A problem of the source at `i`.
    void add_source(const char* code, std::uint32_t i, const std::string& does, const char* advice,
                    const char* several, double size = 0) {
        const std::string name = source_name(seen_, acquisition_.sources.sources[i]);
        found_.push_back({code, i, "source " + name + " " + does, advice});
        found_.back().is_one_of(several, name, size);
    }

    void add_source(const SourceTrouble& trouble, std::uint32_t i, const std::string& does, double size = 0) {
        found_.push_back(
            source_problem(trouble, i, source_name(seen_, acquisition_.sources.sources[i]), does, size));
    }

    void source(std::uint32_t i) {
        const SourceStatus& s = acquisition_.sources.sources[i];
        const auto& sources_before = acquisition_before_.sources.sources;
        if (s.numbers) found_.push_back(sequence_problem(i, source_name(seen_, s), s.numbers));
        if (s.rate && s.state != SourceState::silent)
            found_.push_back(rate_problem(i, source_name(seen_, s), *s.rate));
        if (i < sources_before.size() && s.steps_back > sources_before[i].steps_back)
            add_source(source_stepped_back, i, source_stepped_back.does);
        // After an end of stream, numbers may start anywhere.
        const SequenceCounts before =
            i < sources_before.size() ? sources_before[i].sequence : SequenceCounts{};
        if (!s.numbers &&
            s.sequence.restarted - s.sequence.new_streams > before.restarted - before.new_streams)
            add_source(source_restarted, i, source_restarted.does);
        if (s.state == SourceState::silent) silent_source(i);
        if (s.state == SourceState::jumping) {
            add_source("source_jumping", i, "jumps in time", "check clock and reset", "sources jump in time");
        }
        misplaced_source(i);
    }

    void silent_source(std::uint32_t i) {
        const SourceStatus& s = acquisition_.sources.sources[i];
        // A board without hits that sends heartbeats is healthy.
        if (s.last_seen && silent_ms(s) < seen_.configuration().watermark.source_timeout_ms) return;
        // A detector that is off is no fault; one board of it is. Boards that are switched on together do not
        // begin at the same moment.
        if (!s.last_seen && heard_for_ms() < seen_.configuration().watermark.source_timeout_ms) return;
        const double silent_s = silent_ms(s) / 1000;
        add_source(
            source_silent, i,
            fmt::format("{} {}", source_silent.does,
                        s.last_seen ? fmt::format("for {:.1f} s", silent_s) : "since the daemon started"),
            silent_s);
    }

    /// Time since its latest datagram; 0 before the first one.
    [[nodiscard]] double silent_ms(const SourceStatus& s) const {
        const std::int64_t now_ns = seen_.now->taken.time_since_epoch() / std::chrono::nanoseconds(1);
        return s.last_seen ? static_cast<double>(now_ns - *s.last_seen) * 1e-6 : 0;
    }

    /// Time since the first datagram of any source; 0 before it.
    [[nodiscard]] double heard_for_ms() const {
        const std::int64_t now_ns = seen_.now->taken.time_since_epoch() / std::chrono::nanoseconds(1);
        std::int64_t first_ns = now_ns;
        for (const SourceStatus& s : acquisition_.sources.sources)
            first_ns = std::min(first_ns, s.first_seen.value_or(now_ns));
        return static_cast<double>(now_ns - first_ns) * 1e-6;
    }

    [[nodiscard]] double skew_ms(const SourceStatus& s) const {
        return static_cast<double>(s.skew.value_or(0)) * seen_.scanner().tick_ps * 1e-9;
    }

    /// Where detector time follows a few sources, and more of them are ahead or behind, the few are wrong:
    /// one clock that leads must not blame all others.
    void find_the_wrong() {
        std::size_t in_place = 0;
        std::vector<double> behind;
        std::vector<double> ahead;
        for (const SourceStatus& s : acquisition_.sources.sources) {
            in_place += static_cast<std::size_t>(s.state == SourceState::active && s.skew);
            if (s.state == SourceState::lagging) behind.push_back(skew_ms(s));
            if (s.state == SourceState::leading) ahead.push_back(skew_ms(s));
        }
        for (std::vector<double>* away : {&behind, &ahead}) {
            if (in_place == 0 || away->size() <= in_place) continue;
            right_ms_ = config::median(*away);
        }
    }

    void misplaced_source(std::uint32_t i) {
        const SourceStatus& s = acquisition_.sources.sources[i];
        const bool away = s.state == SourceState::lagging || s.state == SourceState::leading;
        if (!away && (s.state != SourceState::active || !s.skew)) return;
        // Relative to the time of most sources.
        const double off_ms = skew_ms(s) - right_ms_.value_or(0);
        const char* const code = off_ms < 0 ? "source_lagging" : "source_leading";
        const auto limit = static_cast<double>(seen_.configuration().watermark.max_lag_ms);
        constexpr double margin = 0.9;
        const bool over = right_ms_ ? std::abs(off_ms) > limit : away;
        if (!over && (seen_.health->find(code, i) == nullptr || std::abs(off_ms) <= margin * limit)) return;
        // While nothing arrives from it, others move on: that is silence.
        if (off_ms < 0 && -off_ms - silent_ms(s) <= margin * limit) return;
        const std::string size = fmt::format("{:.0f} ms", std::abs(off_ms));
        if (off_ms < 0) {
            add_source(code, i,
                       over ? "lags " + size + " behind the others"
                            : fmt::format("lagged and is {} behind the others, not yet below {:g} ms", size,
                                          margin * limit),
                       "the frames arrive too late to be paired: check clock and link",
                       "sources lag behind the others", -off_ms);
        } else {
            add_source(code, i,
                       over ? "is " + size + " ahead of the others"
                            : fmt::format("led and is {} ahead of the others, not yet below {:g} ms", size,
                                          margin * limit),
                       "the frames are not used: check the clock, or reset all boards together",
                       "sources are ahead of the others", off_ms);
        }
    }

    const Observation& seen_;
    const AcquisitionSnapshot& acquisition_;
    const AcquisitionSnapshot& acquisition_before_;
    /// Skew of most sources, ms; absent: detector time is theirs.
    std::optional<double> right_ms_;
    std::vector<Problem> found_;
};

}  // namespace

std::vector<Problem> find_source_problems(const Observation& seen) {
    return SourceFinder(seen).find();
}

std::string source_name(const Observation& seen, const SourceStatus& source) {
    const bool bare = seen.configuration().receive.framing == config::Framing::bare;
    return bare ? net::to_text({source.address, source.port}) : fmt::to_string(source.id);
}

std::uint64_t invalid_frames_arrived(const Observation& seen) {
    const auto sum = [](const AcquisitionSnapshot& a) {
        std::uint64_t frames = 0;
        for (const SourceStatus& source : a.sources.sources)
            frames += source.invalid_frames;
        return frames;
    };
    const std::uint64_t before = sum(*seen.before->acquisition);
    const std::uint64_t now = sum(*seen.now->acquisition);
    return now > before ? now - before : 0;  // another source may have taken a slot
}

bool anything_heard(const AcquisitionSnapshot& now) {
    return std::any_of(now.sources.sources.begin(), now.sources.sources.end(),
                       [](const SourceStatus& s) { return s.last_seen.has_value(); });
}

}  // namespace petacq::daemon
