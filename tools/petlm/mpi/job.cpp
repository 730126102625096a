#include "tools/petlm/mpi/job.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "config/base/answer.hpp"
#include "config/base/seconds_since.hpp"
#include "daemon/tracking/saturate.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/mpi/exchange.hpp"
#include "tools/petlm/mpi/job_directory.hpp"
#include "tools/petlm/mpi/plan.hpp"
#include "tools/petlm/resort/parts/joined_run.hpp"
#include "tools/petlm/resort/parts/part.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/group_starts.hpp"
#include "tools/petlm/resort/search/settings.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

namespace petacq::petlm {
namespace {

constexpr int begin_tag = 1;
constexpr int part_tag = 4;
constexpr const char* inputs_directory = "inputs";

/// Of ranks that have nothing to do while the runs are still written.
constexpr std::chrono::milliseconds idle_interval(200);

using Clock = std::chrono::steady_clock;
using daemon::add_or_max;
using daemon::subtract_or_zero;

/// What the parts in a directory depend on, however many there are.
nlohmann::json identity_of(const Inputs& inputs, const Engines& engines, const InputOptions& options) {
    nlohmann::json runs = nlohmann::json::array();
    for (std::size_t i = 0; i < inputs.runs.size(); ++i)
        runs.push_back({inputs.runs[i].string(), inputs.documents[i].value("run_id", nlohmann::json())});
    return {{"settings", engines.settings()},
            {"runs", runs},
            {"from_ticks", options.from},
            {"to_ticks", options.to},
            {"partial", options.partial}};
}

/// One rank at work.
class Rank {
  public:
    Rank(const ResortOptions& options, bool follow, Communicator& ranks)
        : ranks_(ranks),
          exchange_(ranks, options.input.runs, follow),
          inputs_(exchange_.open()),
          options_(in_ticks(options, inputs_.documents.front())),
          engines_(engines_for(inputs_.documents.front(), options_)),
          plan_(options_, engines_, static_cast<std::size_t>(ranks.size())) {
        check_together(inputs_);
        check_energies(inputs_, engines_.configuration);
    }

    int run() {
        JobDirectory directory(options_.output, options_.force, ranks_);
        directory.begin(identity_of(inputs_, engines_, options_.input));
        find_done_parts();
        search_all();
        ranks_.finish();
        finish();
        directory.end();
        return ok;
    }

  private:
    [[nodiscard]] int owner(std::size_t shard) const {
        if (shard < done_.size()) return done_[shard];
        return static_cast<int>(shard % static_cast<std::size_t>(ranks_.size()));
    }

    /// Finds the parts that are there, from the first one on, each where the one before ends. Others are
    /// removed: nothing says what a part that is missing holds.
    void find_done_parts() {
        gpu::TickRange found;
        for (;; ++parts_) {
            const auto state = read_part(options_.output, parts_, engines_.scanner.geometry);
            const bool here = state && (parts_ == 0 || state->begin == found.end);
            const auto all = ranks_.gather(here ? 1 : 0);
            const auto has = std::find(all.begin(), all.end(), 1U);
            if (has == all.end()) break;
            done_.push_back(static_cast<int>(has - all.begin()));
            const auto rank = static_cast<std::size_t>(done_.back());
            const std::uint64_t begin = ranks_.gather(here ? state->begin : 0)[rank];
            const std::uint64_t end = ranks_.gather(here ? state->end : 0)[rank];
            found = {parts_ == 0 ? begin : found.start, end};
        }
        remove_parts_after(options_.output, parts_);
        (void)ranks_.gather(0);  // all have removed theirs
        if (parts_ == 0) return;
        plan_.go_on_after(found);
        if (ranks_.rank() == 0) std::cerr << fmt::format("petlm-mpi: going on after {} parts\n", parts_);
    }

    void search_all() {
        const std::size_t first = parts_;
        const auto count = static_cast<std::size_t>(ranks_.size());
        const auto worker = static_cast<std::size_t>(ranks_.rank_on_host());
        std::unique_ptr<ShardSearch> search;
        GroupStarts starts(inputs_.singles, engines_.rules, engines_.energies());
        const std::uint64_t before = engines_.rules.gammas ? engines_.rules.gammas->before : 0;
        while (!plan_.finished()) {
            learn();
            const std::vector<gpu::TickRange> shards = plan_.next(inputs_);
            if (shards.empty()) {
                show_progress();
                if (!plan_.finished()) std::this_thread::sleep_for(idle_interval);
                continue;
            }
            std::vector<gpu::TickRange> wanted(count);
            std::optional<std::size_t> own;
            for (std::size_t i = 0; i < shards.size(); ++i) {
                const auto rank = static_cast<std::size_t>(owner(parts_ + i));
                wanted[rank] = {subtract_or_zero(shards[i].start, before),
                                add_or_max(shards[i].end, reach_of(engines_.rules))};
                if (rank == static_cast<std::size_t>(ranks_.rank())) own = i;
            }
            exchange_.singles(inputs_, wanted);
            if (own) {
                const auto at_start = Clock::now();
                if (!search) search = engines_.make_search(worker);
                back_end_ = ", " + search->back_end();
                const bool last = plan_.finished() && *own + 1 == shards.size();
                work_on(parts_ + *own, shards[*own], parts_ + *own == first, last, *search, starts);
                busy_s_ += config::seconds_since(at_start);
            }
            parts_ += shards.size();
            show_progress();
        }
    }

    /// Learns what the runs have by now.
    void learn() {
        const std::vector<bool> before = inputs_.ended;
        exchange_.extend(inputs_);
        if (ranks_.rank() != 0 || !exchange_.follows()) return;
        for (std::size_t i = 0; i < inputs_.runs.size(); ++i) {
            if (!inputs_.ended[i] || before[i]) continue;
            const std::string state = inputs_.documents[i].value("state", "");
            std::cerr << fmt::format("petlm-mpi: {}: {}\n", inputs_.runs[i].string(),
                                     state != "running" ? state : "interrupted; its whole blocks are taken");
        }
    }

    /// `first`: of those that are searched; it begins as planned.
    void work_on(std::size_t shard, gpu::TickRange planned, bool first, bool last, ShardSearch& search,
                 GroupStarts& starts) {
        std::optional<std::uint64_t> begin;
        const auto own_begin = [&] {
            if (!begin) begin = first ? planned.start : ranks_.take(owner(shard - 1), begin_tag);
            return *begin;
        };
        gpu::TickRange found = planned;
        if (!last) {
            found.end = starts.next(planned, own_begin);
            ranks_.post(found.end, owner(shard + 1), begin_tag);
        }
        found.start = own_begin();
        ShardResult result;
        if (found.start < found.end) {
            // Pieces of the seconds of the run, however far those are known.
            const daemon::Intervals times =
                inputs_.settled ? inputs_.searched.intersect(found) : daemon::Intervals(found);
            result = search.search(inputs_.singles, found, {plan_.start(), plan_.limit()},
                                   second_ranges(times, inputs_.singles, engines_.ticks_per_s()));
        }
        result.range = found;
        write_part(options_.output, shard, result, inputs_, engines_,
                   covered_by_result(inputs_, engines_.configuration, options_.output));
        singles_ += result.taken.received;
    }

    void show_progress() {
        if (ranks_.rank() != 0 || Clock::now() - shown_ < std::chrono::seconds(2)) return;
        shown_ = Clock::now();
        const double s = static_cast<double>(plan_.position()) / static_cast<double>(engines_.ticks_per_s());
        std::cerr << fmt::format(
            "petlm-mpi: {} parts, up to {:.1f} s of detector time; {:.1f} M singles/s on rank 0\n", parts_, s,
            busy_s_ == 0 ? 0 : static_cast<double>(singles_) / busy_s_ * 1e-6);
    }

    /// Rank 0 puts the parts together: seconds, tags, run.json.
    void finish() {
        inputs_.files_at = exchange_.files(options_.output / inputs_directory);
        show_ranks();
        if (ranks_.rank() != 0) {
            send_parts();
            return;
        }
        config::print_written(join_parts(inputs_, engines_,
                                         {parts_, [this](std::size_t shard) { return state_of(shard); },
                                          fmt::format("{} ranks{}", ranks_.size(), back_end_)},
                                         options_.output),
                              false, "petlm-mpi");
        std::filesystem::remove_all(options_.output / inputs_directory);
    }

    PartState state_of(std::size_t shard) {
        std::optional<PartState> state;
        const int rank = owner(shard);
        if (rank == 0) {
            state = read_part(options_.output, shard, engines_.scanner.geometry);
        } else {
            state = decode(ranks_.receive(rank, part_tag), engines_.scanner.geometry);
        }
        if (!state) throw BadInput(fmt::format("{}: gone or changed", part_name(shard)));
        return *state;
    }

    void send_parts() {
        for (std::size_t shard = 0; shard < parts_; ++shard) {
            if (owner(shard) != ranks_.rank()) continue;
            const auto state = read_part(options_.output, shard, engines_.scanner.geometry);
            ranks_.send(state ? encode(*state) : std::vector<std::byte>{}, 0, part_tag);
        }
    }

    /// Rate and memory of each rank.
    void show_ranks() {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        const auto singles = ranks_.gather(singles_);
        const auto ms = ranks_.gather(static_cast<std::uint64_t>(busy_s_ * 1000));
        const auto kib = ranks_.gather(static_cast<std::uint64_t>(usage.ru_maxrss));
        if (ranks_.rank() != 0) return;
        for (std::size_t rank = 0; rank < singles.size(); ++rank) {
            std::cerr << fmt::format(
                "petlm-mpi: rank {}: {} singles in {:.1f} s, {:.1f} M singles/s, at most {} MiB\n", rank,
                singles[rank], static_cast<double>(ms[rank]) * 1e-3,
                ms[rank] == 0 ? 0 : static_cast<double>(singles[rank]) / static_cast<double>(ms[rank]) * 1e-3,
                kib[rank] >> 10U);
        }
    }

    Communicator& ranks_;
    Exchange exchange_;
    Inputs inputs_;
    const ResortOptions options_;
    const Engines engines_;
    Plan plan_;
    std::vector<int> done_;  ///< [part] the rank that has it, of those that were there
    std::size_t parts_ = 0;  ///< there or planned
    std::uint64_t singles_ = 0;
    double busy_s_ = 0;
    std::string back_end_;  ///< of this rank; empty: it had nothing to search
    Clock::time_point shown_ = Clock::now();
};

}  // namespace

int run_job(const ResortOptions& options, bool follow, Communicator& ranks) {
    check_output(options.output, options.input);
    return Rank(options, follow, ranks).run();
}

}  // namespace petacq::petlm
