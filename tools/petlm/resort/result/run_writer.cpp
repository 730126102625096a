#include "tools/petlm/resort/result/run_writer.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "daemon/run/directory.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

namespace petacq::petlm {
namespace {

/// The description of the seconds of a run whose coincidences have this one.
nlohmann::json seconds_description(nlohmann::json of_coincidences, const gpu::CoincidenceRules& rules) {
    of_coincidences["window_mode"] = name_of(rules.mode);
    of_coincidences["multiples_policy"] = name_of(rules.policy);
    return of_coincidences;
}

/// The seconds are written under the partial name of `path`. Throws if writing has failed.
daemon::ListModePart close(daemon::SecondsFile& seconds, const std::filesystem::path& path) {
    const daemon::SecondsCounts written = seconds.finish();
    if (!seconds.failure().empty()) throw std::runtime_error(seconds.failure());
    return part_of(path, written.written, seconds.part().first_time, seconds.part().last_time);
}

/// Creates the seconds; nullptr for a file of coincidences alone.
std::unique_ptr<daemon::SecondsFile> claim_files(const Inputs& inputs, const Engines& engines,
                                                 const daemon::Coverage& covered,
                                                 const std::filesystem::path& output, Outputs& outputs) {
    if (is_one_file(output)) return nullptr;
    for (const char* name : {daemon::seconds_file, daemon::tags_file, daemon::run_file})
        outputs.claim(output / name);
    const std::filesystem::path partial = Outputs::partial(output / daemon::seconds_file);
    std::filesystem::remove(partial);  // of a program that was killed
    return std::make_unique<daemon::SecondsFile>(
        partial, engines.scanner.geometry,
        seconds_description(engines.description(daemon::RecordKind::seconds, inputs, covered), engines.rules),
        config::Compression::none, std::chrono::minutes(1), daemon::Closing{},
        engines.rules.gammas.has_value());
}

}  // namespace

RunWriter::RunWriter(const Inputs& inputs, const Engines& engines, const std::filesystem::path& output,
                     Outputs& outputs, GammaBorders borders)
    : inputs_(inputs),
      engines_(engines),
      output_(output),
      covered_(covered_by_result(inputs, engines.configuration, output)),
      seconds_file_(claim_files(inputs, engines, covered_, output, outputs)),
      seconds_(inputs.reporting(), inputs.heard(),
               second_ranges(inputs.searched, inputs.singles, engines.ticks_per_s()),
               engines.scanner.geometry, engines.ticks_per_s(), engines.rules, seconds_file_.get()),
      borders_(std::move(borders)) {
    if (engines.rules.gammas) made_.gammas.emplace();
}

void RunWriter::add(ShardSums& shard) {
    borders_.settle(shard);
    for (const auto& [time, sums] : shard.sums) {
        seconds_.add(time, sums);
        if (made_.gammas) *made_.gammas += sums.gammas;
    }
    made_.taken += shard.taken;
    made_.singles += shard.counts;
}

const ResortedRun& RunWriter::finish(std::vector<daemon::ListModePart> coincidences,
                                     std::vector<daemon::ListModePart> triples, std::string back_end) {
    seconds_.finish();
    check_taken(made_.taken, inputs_);
    made_.coincidences_files = std::move(coincidences);
    made_.triples_files = std::move(triples);
    made_.back_end = std::move(back_end);
    if (seconds_file_) {
        made_.seconds_file = close(*seconds_file_, output_ / daemon::seconds_file);
        made_.seconds = seconds_.total();
        made_.live = seconds_.live();
        made_.lost_by_all = seconds_.lost_by_all();
        complete_run(inputs_, engines_.settings(), covered_, made_, output_);
    }
    return made_;
}

}  // namespace petacq::petlm
