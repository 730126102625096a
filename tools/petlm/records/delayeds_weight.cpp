#include "tools/petlm/records/delayeds_weight.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

DelayedsWeight::DelayedsWeight(const std::vector<std::filesystem::path>& runs,
                               const daemon::RecordRules& rules) {
    for (const std::filesystem::path& directory : runs) {
        try {
            WeightedRun run{std::make_unique<daemon::SecondsReader>(
                record_files(directory, daemon::RecordKind::seconds).front())};
            std::string ignored;
            const daemon::Coverage of_run =
                daemon::coverage_of(run.reader->reader().description(), run_json(directory, ignored), true);
            if (const std::string difference = difference_from_run(of_run.rules, rules);
                !difference.empty()) {
                trouble_ = run.reader->reader().path().string() +
                           ": made by other rules than the records: " + difference;
                continue;
            }
            run.field = run.reader->find("delayeds_weight");
            if (run.field == nullptr) {
                trouble_ = run.reader->reader().path().string() + ": no delayeds_weight";
                continue;
            }
            advance(run);
            runs_.push_back(std::move(run));
        } catch (const daemon::NotListMode& error) {
            trouble_ = error.what();
        }
    }
}

void DelayedsWeight::advance(WeightedRun& run) {
    if (run.reader->next()) return;
    const daemon::ListModeReader& file = run.reader->reader();
    if (file.condition().state != daemon::FileState::complete)
        trouble_ = file.path().string() + ": " + file.condition().summary();
    run.reader.reset();
}

double DelayedsWeight::at(std::uint64_t time) {
    for (WeightedRun& run : runs_) {
        while (run.reader != nullptr && run.reader->start() <= time) {
            if (run.reader->start() >= latest_) weight_ = run.reader->values(*run.field).number();
            latest_ = std::max(latest_, run.reader->start());
            advance(run);
        }
    }
    return weight_;
}

}  // namespace petacq::petlm
