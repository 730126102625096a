#include "tools/petlm/union/growing_search.hpp"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/system/progress_line.hpp"
#include "tools/petlm/resort/result/run_writer.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

namespace petacq::petlm {

GrowingSearch::GrowingSearch(Inputs inputs, const Engines& engines, const std::filesystem::path& output)
    : inputs_(std::move(inputs)),
      engines_(engines),
      output_(output),
      out_(inputs_, engines, covered_by_result(inputs_, engines.configuration, output), output, true),
      sums_(output, engines.scanner.geometry, engines.ticks_per_s()),
      workers_(engines, engines.workers) {}

template <class Use>
void GrowingSearch::search(std::span<const SinglesFiles> singles, std::span<const gpu::TickRange> shards,
                           gpu::TickRange all, std::span<const gpu::TickRange> seconds, Use use) {
    workers_.start({singles, shards, all, 0, shards.size(), begin_, seconds});
    for (std::size_t i = 0; i < shards.size(); ++i) {
        ShardResult shard = workers_.next();
        out_.append(shard);
        use(shard, i + 1);
        begin_ = shard.range.end;
    }
    planned_ = shards.back().end;
}

void GrowingSearch::advance() {
    SinglesFiles& singles = inputs_.singles.front();
    singles.extend();
    if (singles.blocks().empty()) return;
    if (!start_) planned_ = begin_ = singles.blocks().front().first_time;
    // More singles may have the time of the last one.
    const std::uint64_t known = singles.blocks().back().last_time;
    const std::uint64_t reach = reach_of(engines_.rules);
    if (known - planned_ <= reach) return;
    if (!start_) start_ = planned_;
    const auto shards = next_shards(inputs_.singles, {planned_, known - reach}, {shard_singles, 1});
    const auto seconds =
        second_ranges(gpu::TickRange{begin_, known}, inputs_.singles, engines_.ticks_per_s());
    search(inputs_.singles, shards, {*start_, UINT64_MAX}, seconds, [&](ShardResult& shard, std::size_t) {
        borders_.settle(shard);
        sums_.add(shard);
    });
}

ResortedRun GrowingSearch::finish(const Inputs& inputs, Outputs& outputs) {
    if (!has_begun()) planned_ = begin_ = inputs.interval.start;
    RunWriter run(inputs, engines_, output_, outputs, std::move(borders_));
    sums_.take([&](ShardSums& sums) { run.add(sums); });
    const auto shards = plan_shards(inputs.singles, {planned_, inputs.interval.end}, shard_singles);
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        search(inputs.singles, shards, inputs.interval, run.seconds(),
               [&](ShardResult& shard, std::size_t done) {
                   run.add(shard);
                   progress.show(done);
               });
    }
    RecordsOut::Files files = out_.close(inputs, run.covered());
    return run.finish(std::move(files.coincidences), std::move(files.triples), workers_.description());
}

}  // namespace petacq::petlm
