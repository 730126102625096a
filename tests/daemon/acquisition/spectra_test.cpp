// Which frames count in the spectra of a run, and what is shown of them meanwhile.
#include "daemon/acquisition/spectra_view.hpp"
#include "tests/daemon/acquisition/acquisition_stand.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// The document of the stand, with spectra.
void count_spectra(AcquisitionStand& stand) {
    nlohmann::json document = *stand.configuration->document;
    document["spectra"]["enabled"] = true;
    stand.configuration = std::make_shared<const config::Configuration>(
        config::configuration_from_json(document, stand.directory.path()));
}

}  // namespace

TEST_CASE("frames count while a run waits or is in progress, from its start to its stop", "[acquisition]") {
    AcquisitionStand stand;
    count_spectra(stand);
    stand.make();
    stand.stream(0, 50 * ms);
    stand.silence();
    for (const auto& slice : stand.script.slices)
        CHECK_FALSE(slice.spectra);
    const std::size_t before = stand.script.slices.size();
    daemon::RequestedInterval interval;
    interval.start = 100 * ms;
    interval.stop = 150 * ms;
    stand.begin(interval);
    stand.stream(50 * ms, 400 * ms);
    stand.silence();
    REQUIRE(stand.finished.size() == 1);
    std::uint32_t counted = 0;
    for (std::size_t i = before; i < stand.script.slices.size(); ++i) {
        const auto& slice = stand.script.slices[i];
        if (!slice.spectra) continue;
        CHECK(slice.spectra->start == 100 * ms);
        CHECK(slice.spectra->end == 150 * ms);
        counted += static_cast<std::uint32_t>(slice.frames);
    }
    CHECK(counted > 0);
    CHECK(stand.finished[0].end.spectra.floods == std::vector<std::uint32_t>{counted});
    CHECK_FALSE(stand.script.slices.back().spectra);
}

TEST_CASE("units that somebody asks for are shown, and forgotten after a while", "[acquisition]") {
    PipelineScript script;
    net::BatchPool pool(2, 4096, net::make_host_memory({false, false}));
    net::BatchQueue filled(1, 2);
    daemon::BatchExchange batches(pool, filled);
    daemon::AcquisitionProgress progress;
    daemon::PipelineFeed feed(std::make_unique<ScriptedPipeline>(script), 1000, batches, progress);
    daemon::SpectraView view;
    CHECK(view.ask(5) == nullptr);
    script.counted = 70;
    view.refresh(feed);
    REQUIRE(view.ask(5) != nullptr);
    CHECK(view.ask(5)->flood == std::vector<std::uint32_t>{5, 70});
    script.counted = 80;
    view.refresh(feed);
    CHECK(view.ask(5)->flood == std::vector<std::uint32_t>{5, 80});
    // No more than eight at once.
    for (std::uint32_t unit = 10; unit < 30; ++unit)
        CHECK(view.ask(unit) == nullptr);
    view.refresh(feed);
    CHECK(view.ask(16) != nullptr);
    CHECK(view.ask(17) == nullptr);
    for (int i = 0; i <= daemon::SpectraView::patience; ++i)
        view.refresh(feed);
    CHECK(view.ask(17) == nullptr);
    view.refresh(feed);
    CHECK(view.ask(17) != nullptr);
    // A pipeline that has failed shows nothing new.
    feed.fail("for a test");
    CHECK(view.ask(18) == nullptr);
    view.refresh(feed);
    CHECK(view.ask(18) == nullptr);
}
