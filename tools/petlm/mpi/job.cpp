#include "tools/petlm/mpi/job.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "daemon/run/directory.hpp"
#include "tools/petlm/mpi/exchange.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resort/engines.hpp"
#include "tools/petlm/resort/group_starts.hpp"
#include "tools/petlm/resort/inputs.hpp"
#include "tools/petlm/resort/parts/job_directory.hpp"
#include "tools/petlm/resort/parts/joined_run.hpp"
#include "tools/petlm/resort/parts/part.hpp"
#include "tools/petlm/resort/resorted_run.hpp"
#include "tools/petlm/resort/second_ranges.hpp"

namespace petacq::petlm {
namespace {

constexpr int begin_tag = 1;
constexpr int part_tag = 4;
constexpr const char* inputs_directory = "inputs";

using Clock = std::chrono::steady_clock;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/// Prepares the output directory of this rank: a new job, or the same one again.
void prepare(const ResortOptions& options, const nlohmann::json& identity, bool writes) {
    std::filesystem::create_directories(options.output);
    if (std::filesystem::exists(options.output / daemon::run_file) && !options.force)
        throw UsageError(options.output.string() + ": exists; --force replaces it");
    if (options.force && writes) {
        for (const auto& entry : std::filesystem::directory_iterator(options.output)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("coincidences") || name == job_file || name == daemon::run_file ||
                name == daemon::tags_file || name == daemon::seconds_file)
                std::filesystem::remove(entry.path());
        }
    }
    agree_on_job(options.output, identity);
}

/// One rank at work.
class Rank {
  public:
    Rank(const ResortOptions& options, Communicator& ranks)
        : options_(options), ranks_(ranks), exchange_(ranks, options.input.runs) {}

    int run() {
        inputs_ = exchange_.open();
        settle_interval(inputs_, options_.input);
        engines_.emplace(engines_for(inputs_.documents.front(), options_));
        shards_ = plan_shards(inputs_.singles, inputs_.interval, options_.shard_singles);
        seconds_ =
            second_ranges(inputs_.recorded, inputs_.singles, engines_->ticks_per_s(), inputs_.interval);
        const nlohmann::json identity = job_identity(inputs_, *engines_, shards_.size());
        // Ranks that share a directory must not prepare it at once.
        for (int turn = 0; turn < ranks_.size(); ++turn) {
            const bool first = ranks_.rank_on_host() == 0;
            if (turn == ranks_.rank()) prepare(options_, identity, first);
            (void)ranks_.gather(0);
        }
        find_done_parts();
        search_all();
        ranks_.finish();
        finish();
        return ok;
    }

  private:
    [[nodiscard]] int owner(std::size_t shard) const {
        return static_cast<int>(shard % static_cast<std::size_t>(ranks_.size()));
    }

    /// [shard] the first rank that has its part; -1: it has to be searched. Parts after one that is missing
    /// are searched again, since nothing says where the missing one ends.
    void find_done_parts() {
        done_.assign(shards_.size(), -1);
        for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
            const auto state = read_part(options_.output, shard, engines_->scanner.geometry);
            const bool here = state && state->planned == shards_[shard];
            const auto all = ranks_.gather(here ? 1 : 0);
            const auto has = std::find(all.begin(), all.end(), 1U);
            if (has == all.end()) break;
            done_[shard] = static_cast<int>(has - all.begin());
            const auto ends = ranks_.gather(here ? state->end : 0);
            begin_ = ends[static_cast<std::size_t>(done_[shard])];
            first_ = shard + 1;
        }
        if (first_ == 0) begin_ = shards_.front().start;
        if (ranks_.rank() == 0 && first_ != 0)
            std::cerr << fmt::format("going on after {} of {} parts\n", first_, shards_.size());
    }

    void search_all() {
        if (first_ == shards_.size()) return;
        const std::unique_ptr<ShardSearch> search =
            engines_->make_search(static_cast<std::size_t>(ranks_.rank_on_host()));
        back_end_ = search->back_end();
        GroupStarts starts(inputs_.singles, engines_->rules, engines_->energies());
        const nlohmann::json description = engines_->description(inputs_.singles.front().description());
        const auto at_start = Clock::now();
        const auto count = static_cast<std::size_t>(ranks_.size());
        for (std::size_t round = first_ / count * count; round < shards_.size(); round += count) {
            std::vector<gpu::TickRange> wanted(count);
            for (std::size_t rank = 0; rank < count; ++rank) {
                const std::size_t shard = round + rank;
                if (shard < first_ || shard >= shards_.size()) continue;
                const gpu::CoincidenceRules& rules = engines_->rules;
                wanted[rank] = shards_[shard];
                wanted[rank].end = sum(sum(shards_[shard].end, 2 * std::uint64_t{rules.window} + 2),
                                       rules.delay.value_or(0));
            }
            exchange_.singles(inputs_, wanted);
            const std::size_t shard = round + static_cast<std::size_t>(ranks_.rank());
            if (shard >= first_ && shard < shards_.size()) work_on(shard, *search, starts, description);
            show_progress(round, at_start);
        }
        busy_s_ = std::chrono::duration<double>(Clock::now() - at_start).count();
    }

    void work_on(std::size_t shard, ShardSearch& search, GroupStarts& starts,
                 const nlohmann::json& description) {
        std::optional<std::uint64_t> begin;
        const auto own_begin = [&] {
            if (!begin) begin = shard == first_ ? begin_ : ranks_.take(owner(shard - 1), begin_tag);
            return *begin;
        };
        gpu::TickRange found = shards_[shard];
        if (shard + 1 < shards_.size()) {
            found.end = starts.next(found, own_begin);
            ranks_.post(found.end, owner(shard + 1), begin_tag);
        }
        found.start = own_begin();
        ShardResult result;
        if (found.start < found.end) result = search.search(inputs_.singles, found, seconds_);
        check_taken(result.taken, inputs_);
        result.range = found;
        write_part(options_.output, shard, shards_[shard], result, inputs_.singles.front().block_bytes(),
                   description);
        done_[shard] = ranks_.rank();
        singles_ += result.taken.received;
    }

    void show_progress(std::size_t round, Clock::time_point since) {
        if (ranks_.rank() != 0 || Clock::now() - shown_ < std::chrono::seconds(2)) return;
        shown_ = Clock::now();
        const double s = std::chrono::duration<double>(shown_ - since).count();
        std::cerr << fmt::format("{} of {} parts, {:.1f} M singles/s on rank 0\n",
                                 std::min(round + static_cast<std::size_t>(ranks_.size()), shards_.size()),
                                 shards_.size(), static_cast<double>(singles_) / s * 1e-6);
    }

    /// Rank 0 puts the parts together: seconds, tags, run.json.
    void finish() {
        constexpr std::array names{daemon::run_file, daemon::seconds_file, daemon::tags_file};
        Inputs at_hand = std::move(inputs_);
        at_hand.runs = exchange_.files(names, options_.output / inputs_directory);
        show_ranks();
        if (ranks_.rank() != 0) {
            send_parts();
            return;
        }
        join_parts(at_hand, *engines_,
                   {shards_.size(), [this](std::size_t shard) { return state_of(shard); }, seconds_,
                    fmt::format("{} ranks, {}", ranks_.size(), back_end_)},
                   options_.output);
        std::filesystem::remove_all(options_.output / inputs_directory);
    }

    PartState state_of(std::size_t shard) {
        std::optional<PartState> state;
        const int rank = done_[shard] >= 0 ? done_[shard] : owner(shard);
        if (rank == 0) {
            state = read_part(options_.output, shard, engines_->scanner.geometry);
        } else {
            state = decode(ranks_.receive(rank, part_tag), engines_->scanner.geometry);
        }
        if (!state) throw BadInput(fmt::format("{}: gone or changed", part_name(shard)));
        return *state;
    }

    void send_parts() {
        for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
            const int rank = done_[shard] >= 0 ? done_[shard] : owner(shard);
            if (rank != ranks_.rank()) continue;
            const auto state = read_part(options_.output, shard, engines_->scanner.geometry);
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
                "rank {}: {} singles in {:.1f} s, {:.1f} M singles/s, at most {} MiB\n", rank, singles[rank],
                static_cast<double>(ms[rank]) * 1e-3,
                ms[rank] == 0 ? 0 : static_cast<double>(singles[rank]) / static_cast<double>(ms[rank]) * 1e-3,
                kib[rank] >> 10U);
        }
    }

    const ResortOptions& options_;
    Communicator& ranks_;
    Exchange exchange_;
    Inputs inputs_;
    std::optional<Engines> engines_;
    std::vector<gpu::TickRange> shards_;
    std::vector<gpu::TickRange> seconds_;
    std::vector<int> done_;    ///< [shard] the rank that has its part; -1: its owner will
    std::size_t first_ = 0;    ///< shard that is searched
    std::uint64_t begin_ = 0;  ///< where it begins
    std::uint64_t singles_ = 0;
    double busy_s_ = 0;
    std::string back_end_ = "all parts were there";
    Clock::time_point shown_ = Clock::now();
};

}  // namespace

int run_job(const ResortOptions& options, Communicator& ranks) {
    return Rank(options, ranks).run();
}

}  // namespace petacq::petlm
