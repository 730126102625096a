#include "tools/petlm/export/petsird/second_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/seconds/reader.hpp"
#include "gpu/interval_sums.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petsird {
namespace {

/// Seconds are joined with a neighbour where whole milliseconds would change their rates by more.
constexpr double most_rounding = 2e-3;

/// All 1. The boards report the dead time of modules; nothing else is known of pairs.
std::string alive_of_pairs(const Bins& bins) {
    Coded table;
    table.number(bins.type_count());
    for (std::size_t a = 0; a < bins.types.size(); ++a) {
        table.number(a + 1);
        for (std::size_t b = 0; b <= a; ++b) {
            const std::size_t modules = bins.types[a].modules();
            table.number(1).number(modules);  // one dimension
            for (std::size_t module = 0; module < modules; ++module) {
                const std::size_t partners = a == b ? module + 1 : bins.types[b].modules();
                table.number(partners);
                for (std::size_t k = 0; k < partners; ++k)
                    table.number(1).f32(1);
            }
        }
    }
    return std::move(table.bytes);
}

}  // namespace

/// One pass over all seconds of the run.
class SecondBlocks::Pass {
  public:
    Pass(const std::vector<std::filesystem::path>& files, std::size_t modules, std::size_t crystals)
        : files_(files), modules_(modules), crystals_(crystals) {}

    bool next() {
        for (;;) {
            if (!reader_) {
                if (file_ == files_.size()) return false;
                reader_ = std::make_unique<daemon::SecondsReader>(files_[file_]);
                dead_time_ = field("module_dead_time", modules_);
                unpaired_ = field("crystal_unpaired", crystals_);
                grouped_ = field("crystal_grouped", crystals_);
            }
            if (reader_->next()) {
                ++number_;
                return true;
            }
            const auto& condition = reader_->reader().condition();
            if (condition.state != daemon::FileState::complete)
                throw petlm::BadInput(files_[file_].string() + ": " + condition.summary());
            reader_.reset();
            ++file_;
        }
    }
    /// Of the current second, from 0.
    [[nodiscard]] std::uint64_t number() const { return number_ - 1; }
    [[nodiscard]] std::uint64_t start() const { return reader_->start(); }
    [[nodiscard]] std::uint64_t length() const { return reader_->length(); }
    /// Ticks; NaN: unknown.
    [[nodiscard]] double dead_time(std::size_t module) const {
        return reader_->values(*dead_time_).number(module);
    }
    [[nodiscard]] bool knows_dead_time() const {
        for (std::size_t module = 0; module < modules_; ++module)
            if (!std::isnan(dead_time(module))) return true;
        return false;
    }
    void add_singles(std::vector<std::uint64_t>& singles) const {
        const auto unpaired = reader_->values(*unpaired_);
        const auto grouped = reader_->values(*grouped_);
        for (std::size_t crystal = 0; crystal < crystals_; ++crystal)
            singles[crystal] +=
                static_cast<std::uint64_t>(unpaired.number(crystal) + grouped.number(crystal));
    }

  private:
    const daemon::SecondField* field(const char* name, std::size_t count) {
        const daemon::SecondField* found = reader_->find(name);
        if (found == nullptr || found->count != count) {
            throw petlm::BadInput(
                fmt::format("{}: expected a field {} of {} numbers, as the scanner has them",
                            files_[file_].string(), name, count));
        }
        return found;
    }

    const std::vector<std::filesystem::path>& files_;
    std::size_t modules_;
    std::size_t crystals_;
    std::size_t file_ = 0;
    std::uint64_t number_ = 0;
    std::unique_ptr<daemon::SecondsReader> reader_;
    const daemon::SecondField* dead_time_ = nullptr;
    const daemon::SecondField* unpaired_ = nullptr;
    const daemon::SecondField* grouped_ = nullptr;
};

SecondBlocks::SecondBlocks(std::vector<std::filesystem::path> files, const config::Geometry& geometry,
                           const Bins& bins, const TimeBlocks& time, Version version)
    : files_(std::move(files)),
      bins_(bins),
      time_(time),
      version_(version),
      module_of_(gpu::modules_of_crystals(geometry)),
      modules_(geometry.bdm_count) {
    if (files_.empty()) return;
    look();
    covers_all_ = cover_all();
    if (!covers_all_)
        not_held_.emplace_back(
            "singles histograms and dead time: left out, as the run lacks some of its seconds");
    if (version_ != Version::v0_9_1) alive_of_pairs_ = alive_of_pairs(bins_);
    pass_ = std::make_unique<Pass>(files_, modules_, module_of_.size());
}

SecondBlocks::~SecondBlocks() = default;

void SecondBlocks::look() {
    Pass pass(files_, modules_, module_of_.size());
    std::vector<JoinedSeconds> seconds;
    std::uint64_t all = 0;
    std::uint64_t unknown = 0;
    for (; pass.next(); ++all) {
        if (!pass.knows_dead_time()) ++unknown;
        const std::uint64_t start = std::max(pass.start(), time_.start_ticks());
        const std::uint64_t end = pass.start() + pass.length();
        const bool has_events = std::any_of(time_.ranges().begin(), time_.ranges().end(),
                                            [&](const Range& r) { return start < r.end && r.start < end; });
        if (has_events) seconds.push_back({start, end, 0, 0, all, all});
    }
    has_dead_time_ = unknown < all;
    make_spans(seconds);
    if (!has_dead_time_) {
        not_held_.emplace_back("dead time: not known");
    } else if (unknown != 0) {
        not_held_.push_back(
            fmt::format("dead time: not known in {} of {} seconds, written as none", unknown, spans_.size()));
    }
}

void SecondBlocks::make_spans(const std::vector<JoinedSeconds>& seconds) {
    for (std::size_t k = 0; k < seconds.size(); ++k) {
        const bool is_followed = k + 1 < seconds.size() && seconds[k + 1].start == seconds[k].end;
        JoinedSeconds span = span_of(seconds[k], is_followed);
        if (!spans_.empty() && spans_.back().end == seconds[k].start &&
            (is_rounded(spans_.back()) || is_rounded(span))) {
            const JoinedSeconds before = spans_.back();
            spans_.pop_back();
            span = span_of({before.start, seconds[k].end, 0, 0, before.first, seconds[k].last}, is_followed);
        }
        spans_.push_back(span);
    }
}

SecondBlocks::JoinedSeconds SecondBlocks::span_of(const JoinedSeconds& second, bool is_followed) const {
    JoinedSeconds span = second;
    span.begin_ms = time_.floor_ms(static_cast<double>(second.start - time_.start_ticks()));
    const auto end = static_cast<double>(second.end - time_.start_ticks());
    span.end_ms = is_followed ? time_.floor_ms(end) : time_.ceil_ms(end);
    return span;
}

bool SecondBlocks::is_rounded(const JoinedSeconds& span) const {
    const double exact = static_cast<double>(span.end - span.start) * time_.ms_per_tick();
    return std::abs(static_cast<double>(span.end_ms - span.begin_ms) - exact) > most_rounding * exact;
}

bool SecondBlocks::cover_all() const {
    std::vector<gpu::TickRange> of_spans;
    for (const JoinedSeconds& span : spans_)
        of_spans.push_back(
            {static_cast<std::uint64_t>(span.begin_ms), static_cast<std::uint64_t>(span.end_ms)});
    const daemon::Intervals covered(std::move(of_spans));
    return std::all_of(time_.ranges().begin(), time_.ranges().end(), [&](const Range& range) {
        return covered.ticks_in({range.begin_ms, range.end_ms}) == range.end_ms - range.begin_ms;
    });
}

void SecondBlocks::take_before(std::uint64_t ms, std::vector<OtherBlock>& out) {
    while (any() && next_ < spans_.size() && static_cast<std::uint64_t>(spans_[next_].begin_ms) < ms)
        add(spans_[next_++], out);
}

void SecondBlocks::add(const JoinedSeconds& span, std::vector<OtherBlock>& out) {
    std::vector<std::uint64_t> singles(module_of_.size());
    std::vector<double> blind(modules_);
    double ticks = 0;
    while (pass_->next()) {
        if (pass_->number() >= span.first) {
            pass_->add_singles(singles);
            for (std::size_t module = 0; module < modules_; ++module)
                if (const double dead = pass_->dead_time(module); !std::isnan(dead)) blind[module] += dead;
            ticks += static_cast<double>(pass_->length());
        }
        if (pass_->number() == span.last) break;
    }
    const auto begin_ms = static_cast<std::uint64_t>(span.begin_ms);
    const BlockTime time{begin_ms, static_cast<std::uint64_t>(span.end_ms)};
    if (has_dead_time_) {
        Coded block = block_head(BlockKind::dead_time, time);
        put_alive(block, blind, ticks);
        out.push_back({begin_ms, std::move(block.bytes)});
    }
    Coded block = block_head(BlockKind::singles, time);
    put_singles(block, singles);
    out.push_back({begin_ms, std::move(block.bytes)});
}

void SecondBlocks::put_alive(Coded& block, const std::vector<double>& blind, double ticks) const {
    block.number(bins_.type_count());
    for (const ModuleType& type : bins_.types) {
        block.number(type.crystals.size() * bins_.energies());
        for (const std::uint32_t crystal : type.crystals)
            for (std::uint32_t energy = 0; energy < bins_.energies(); ++energy)
                block.f32(1 - blind[module_of_[crystal]] / ticks);
    }
    if (version_ == Version::v0_9_1) {
        block.flag(false);  // of pairs
    } else {
        block.bytes += alive_of_pairs_;
    }
}

void SecondBlocks::put_singles(Coded& block, const std::vector<std::uint64_t>& singles) const {
    if (version_ != Version::v0_9_1) block.number(0);  // by units of several modules
    block.number(bins_.type_count());
    for (const ModuleType& type : bins_.types) {
        block.number(type.crystals.size());
        for (const std::uint32_t crystal : type.crystals)
            block.number(singles[crystal]);
    }
}

}  // namespace petacq::petsird
