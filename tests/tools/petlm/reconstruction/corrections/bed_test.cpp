// Position tags: whether the bed moved while records were taken.
#include "tools/petlm/reconstruction/corrections/bed.hpp"

#include "tests/tools/petlm/tags.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t one_second = 64'000'000'000;

/// A run of 10 s with these tags.
struct BedRun {
    TemporaryDirectory directory;
    daemon::Coverage whole;

    explicit BedRun(std::vector<gpu::Tag> tags) {
        write_run(directory / "run", {});
        write_tags(directory / "run/tags.plm", std::move(tags));
        whole.tick_ps = export_scanner().tick_ps;
        whole.intervals = daemon::Intervals(gpu::TickRange{0, 10 * one_second});
        whole.origin.runs = {{"test-run", {}}};
    }
    [[nodiscard]] corrections::BedMovement movement(double from_s, double to_s) const {
        const gpu::TickRange range{static_cast<std::uint64_t>(from_s * one_second),
                                   static_cast<std::uint64_t>(to_s * one_second)};
        nlohmann::json description = file_description(export_scanner());
        description["coverage"] = daemon::to_json(daemon::part_of(whole, daemon::Intervals(range)));
        std::filesystem::remove(directory / "run/part.plm");
        write_plm(directory / "run/part.plm", {}, description);
        return corrections::bed_movement(petlm::ExportSource(directory / "run/part.plm"));
    }
};

gpu::Tag at(double s, double mm, unsigned channel = 3) {
    return tag(static_cast<std::uint64_t>(s * one_second), channel, gpu::TagKind::position,
               static_cast<std::uint32_t>(static_cast<std::int32_t>(std::lround(mm * 1000))));
}

}  // namespace

TEST_CASE("bed: steps are positions with their times", "[petlm][bed]") {
    // It trembles, is on its way for 0.2 s, and comes back.
    const BedRun run({at(0, -5), at(1, -5.05), at(2, -5), at(4, 0), at(4.1, 3), at(4.2, 5), at(8, -5)});
    const corrections::BedMovement all = run.movement(0, 10);
    CHECK(all.moved());
    CHECK(all.travel_mm == Approx(10));
    CHECK(all.channel == 3);
    CHECK(all.in_steps());
    REQUIRE(all.positions.size() == 2);
    CHECK(all.positions[0].mm == Approx(-5));
    CHECK(all.positions[0].times == daemon::Intervals({gpu::TickRange{0, 4 * one_second},
                                                       gpu::TickRange{8 * one_second, 10 * one_second}}));
    CHECK(all.positions[1].mm == Approx(5));
    CHECK(all.still_share == Approx(0.98));
    CHECK_THAT(all.text(), contains("moved by 10 mm, as the position tags of channel 3 say"));

    // A part in which it was still.
    CHECK_FALSE(run.movement(4.5, 7).moved());
    CHECK_FALSE(run.movement(0.5, 3).moved());
    CHECK(run.movement(3, 5).moved());
}

TEST_CASE("bed: other movements are not steps", "[petlm][bed]") {
    std::vector<gpu::Tag> tags;
    for (int i = 0; i < 100; ++i)
        tags.push_back(at(0.1 * i, 0.3 * i));
    const corrections::BedMovement steady = BedRun(tags).movement(0, 10);
    CHECK(steady.moved());
    CHECK_FALSE(steady.in_steps());

    const corrections::BedMovement two =
        BedRun({at(0, 0), at(5, 10), at(0, 0, 4), at(5, 20, 4)}).movement(0, 10);
    CHECK(two.travel_mm == Approx(20));
    CHECK(two.moving_channels == 2);
    CHECK_FALSE(two.in_steps());
    CHECK_FALSE(BedRun({at(0, 7), at(5, 7.05)}).movement(0, 10).moved());
    CHECK_FALSE(BedRun({}).movement(0, 10).moved());
}

TEST_CASE("bed: that nobody knows whether it moved is said, with the run and where it was looked for",
          "[petlm][bed]") {
    const BedRun run({at(0, 0), at(5, 10)});
    CHECK(run.movement(0, 10).unknown_text().empty());
    std::filesystem::create_directories(run.directory / "a/b");
    const auto away = run.directory / "a/b/part.plm";
    std::filesystem::rename(run.directory / "run/part.plm", away);
    const corrections::BedMovement gone = corrections::bed_movement(petlm::ExportSource(away));
    CHECK_FALSE(gone.moved());
    CHECK_THAT(gone.unknown_text(),
               contains("Whether the bed moved is not known") && contains("\"test-run\"") &&
                   contains((run.directory / "a/b").string()) && contains((run.directory / "a").string()));
    const auto table = run.directory / "table";
    const Outcome outcome = exported("csv", away, table, "2>&1");
    CAPTURE(outcome.out);
    CHECK_THAT(outcome.out + read_file(table.string() + ".README.txt"),
               contains("Whether the bed moved is not known"));

    // The run is there, but not the tags that it wrote.
    auto document = nlohmann::json::parse(read_file(run.directory / "run/run.json"));
    std::filesystem::remove(run.directory / "run/tags.plm");
    CHECK(run.movement(0, 10).unknown_text().empty());
    document["ledger"]["tags"]["written"] = 2;
    write_file(run.directory / "run/run.json", document.dump());
    CHECK_THAT(run.movement(0, 10).unknown_text(), contains("has lost the tags"));
}

TEST_CASE("bed: the tags of a run count for its own records", "[petlm][bed]") {
    const BedRun run({at(0, 0)});
    const auto other = run.directory / "other";
    write_run(other, {});
    auto document = nlohmann::json::parse(read_file(other / "run.json"));
    document["run_id"] = "other";
    write_file(other / "run.json", document.dump());
    daemon::Coverage of_other = run.whole;
    of_other.origin.runs = {{"other", other}};
    write_tags(run.directory / "run/tags.plm", {at(0, 0)}, {{"coverage", daemon::to_json(run.whole)}});
    write_tags(other / "tags.plm", {at(0, 10), at(5, 30)}, {{"coverage", daemon::to_json(of_other)}});
    const std::vector<daemon::Coverage> cuts = {
        daemon::part_of(run.whole, gpu::TickRange{0, 6 * one_second}),
        daemon::part_of(of_other, gpu::TickRange{6 * one_second, UINT64_MAX})};
    nlohmann::json description = file_description(export_scanner());
    description["coverage"] = daemon::to_json(daemon::united(cuts));
    write_plm(run.directory / "run/both.plm", {}, description);
    const corrections::BedMovement bed =
        corrections::bed_movement(petlm::ExportSource(run.directory / "run/both.plm"));
    REQUIRE(bed.positions.size() == 2);
    CHECK(bed.positions[0].times == daemon::Intervals(gpu::TickRange{0, 6 * one_second}));
    CHECK(bed.positions[1].mm == Approx(30));
    CHECK(bed.unknown.empty());
}
