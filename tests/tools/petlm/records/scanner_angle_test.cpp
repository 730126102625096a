// The angle of a scanner that turns, from the tags of the runs of a file.
#include "tools/petlm/records/scanner_angle.hpp"

#include <cmath>
#include <numbers>

#include "tests/tools/petlm/turning_run.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/records/source.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr double degree = std::numbers::pi / 180;

petlm::ScannerAngle angle_of(const TurningRun& run, double from_s, double to_s) {
    return {run.part(from_s, to_s), covering(from_s, to_s), by_degrees};
}

double degrees_at(const petlm::ScannerAngle& angle, double s) {
    return config::within_turn(angle.at(static_cast<std::uint64_t>(s * one_second))) / degree;
}

}  // namespace

TEST_CASE("scanner angle: a part of a run has the angles of the run", "[petlm][rotation]") {
    // Other channels and other kinds say nothing of it.
    const TurningRun run({degrees_tag(1, 350), degrees_tag(2, 10), degrees_tag(3, 10), degrees_tag(4, 100),
                          degrees_tag(2.5, 77, 3), tag(5 * one_second, 1, gpu::TagKind::trigger, 200)});
    const petlm::ScannerAngle angle = angle_of(run, 2.2, 9);
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
    const TurningRun run({degrees_tag(1, 5, 2)});
    CHECK_THROWS_WITH(angle_of(run, 0, 9),
                      contains("no tag of position on channel 1: the angle of the scanner"));
    const TurningRun none({});
    std::filesystem::remove(none.directory / "run/tags.plm");
    CHECK_THROWS_AS(angle_of(none, 0, 9), petlm::BadInput);
}

TEST_CASE("scanner angle: its tags are not those of a bed", "[petlm][rotation][bed]") {
    const TurningRun run({degrees_tag(0, 0), degrees_tag(4, 90'000), degrees_tag(9, 180'000)});
    const petlm::ExportSource source(run.part(0, 9));
    CHECK(corrections::bed_movement(source).moved());
    CHECK_FALSE(corrections::bed_movement(source, by_degrees).moved());
}
