// The angle of a scanner that turns, from the tags of the runs of a file.
#include "tools/petlm/records/scanner_angle.hpp"

#include <cmath>
#include <numbers>

#include "tests/tools/petlm/tags.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/records/source.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t one_second = 64'000'000'000;
constexpr double degree = std::numbers::pi / 180;
const config::Rotation rotation{1, 360, 0};

gpu::Tag at(double s, std::int32_t count, unsigned channel = 1) {
    return tag(static_cast<std::uint64_t>(s * one_second), channel, gpu::TagKind::position,
               static_cast<std::uint32_t>(count));
}

daemon::Coverage covering(double from_s, double to_s) {
    daemon::Coverage coverage;
    coverage.tick_ps = export_scanner().tick_ps;
    coverage.intervals = daemon::Intervals(gpu::TickRange{static_cast<std::uint64_t>(from_s * one_second),
                                                          static_cast<std::uint64_t>(to_s * one_second)});
    coverage.origin.runs = {{"test-run", {}}};
    return coverage;
}

struct TurningRun {
    TemporaryDirectory directory;

    explicit TurningRun(std::vector<gpu::Tag> tags) {
        write_run(directory / "run", {});
        nlohmann::json description = file_description(export_scanner());
        description["coverage"] = daemon::to_json(covering(0, 10));
        write_tags(directory / "run/tags.plm", std::move(tags), description);
    }
    /// A part of it, as `petlm cut` makes one.
    [[nodiscard]] petlm::ScannerAngle angle(double from_s, double to_s) const {
        return {part(from_s, to_s), covering(from_s, to_s), rotation};
    }
    [[nodiscard]] std::filesystem::path part(double from_s, double to_s) const {
        nlohmann::json description = file_description(export_scanner());
        description["coverage"] = daemon::to_json(covering(from_s, to_s));
        const std::filesystem::path file = directory / "run/part.plm";
        std::filesystem::remove(file);
        write_plm(file, {}, description);
        return file;
    }
};

double degrees_at(const petlm::ScannerAngle& angle, double s) {
    return config::within_turn(angle.at(static_cast<std::uint64_t>(s * one_second))) / degree;
}

}  // namespace

TEST_CASE("scanner angle: a part of a run has the angles of the run", "[petlm][rotation]") {
    // Other channels and other kinds say nothing of it.
    const TurningRun run({at(1, 350), at(2, 10), at(3, 10), at(4, 100), at(2.5, 77, 3),
                          tag(5 * one_second, 1, gpu::TagKind::trigger, 200)});
    const petlm::ScannerAngle angle = run.angle(2.2, 9);
    CHECK(degrees_at(angle, 0.5) == Approx(350));
    CHECK(degrees_at(angle, 1.75) == Approx(5));
    CHECK(degrees_at(angle, 3.5) == Approx(55));
    CHECK(degrees_at(angle, 8) == Approx(100));

    // Ranges cover the times exactly, and turn no more than asked for.
    const daemon::Intervals times({gpu::TickRange{one_second / 2, one_second * 5 / 2},
                                   gpu::TickRange{one_second * 3 + 7, one_second * 6}});
    std::vector<gpu::TickRange> ranges;
    angle.for_each_range(times, 3 * degree, [&](const gpu::TickRange& range) {
        CHECK(range.ticks() > 0);
        CHECK(std::abs(angle.at(range.end - 1) - angle.at(range.start)) < 3.1 * degree);
        CHECK((ranges.empty() || ranges.back().end <= range.start));
        ranges.push_back(range);
    });
    CHECK(daemon::Intervals(ranges) == times);
    CHECK(ranges.size() < 60);
}

TEST_CASE("scanner angle: without tags it is unknown, never 0", "[petlm][rotation]") {
    const TurningRun run({at(1, 5, 2)});
    CHECK_THROWS_WITH(run.angle(0, 9), contains("no tag of position on channel 1: the angle of the scanner"));
    const TurningRun none({});
    std::filesystem::remove(none.directory / "run/tags.plm");
    CHECK_THROWS_AS(none.angle(0, 9), petlm::BadInput);
}

TEST_CASE("scanner angle: its tags are not those of a bed", "[petlm][rotation][bed]") {
    const TurningRun run({at(0, 0), at(4, 90'000), at(9, 180'000)});
    const petlm::ExportSource source(run.part(0, 9));
    CHECK(corrections::bed_movement(source).moved());
    CHECK_FALSE(corrections::bed_movement(source, rotation).moved());
}
