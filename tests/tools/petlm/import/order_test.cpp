// Records of one time, and out of it.
#include "tests/tools/petlm/import/support.hpp"
#include "tools/petlm/import/sorted.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

using Singles = gpu::RecordVector<gpu::Single>;

/// What comes of them with little memory, three at a time.
Singles sorted(const Singles& given, petlm::SortLimits limits) {
    std::size_t at = 0;
    petlm::Sorted<gpu::Single> sort(
        [&](Singles& out) {
            for (unsigned i = 0; i < 3 && at < given.size(); ++i)
                out.push_back(given[at++]);
            return at < given.size();
        },
        "a file", limits);
    Singles out;
    for (; sort.front() != nullptr; sort.pop())
        out.push_back(*sort.front());
    return out;
}

std::string refusal(const Singles& given, petlm::SortLimits limits) {
    try {
        sorted(given, limits);
    } catch (const petlm::BadInput& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("import: records of one time are in any order, however many they are", "[petlm][import]") {
    RandomRecords random(5, 2880);
    for (const std::uint64_t step : {1U, 2U, 5U}) {
        const Singles expected = random.in_order(
            500, [](auto& r, std::uint64_t time) { return r.single(time); }, step);
        Singles given = expected;
        for (std::size_t i = 0; i < given.size(); ++i) {  // within one time only
            std::size_t end = i;
            while (end < given.size() && given[end].time == given[i].time)
                ++end;
            std::swap(given[i], given[i + random.below(end - i)]);
        }
        CHECK(same_bytes(sorted(given, {10, 1000}), expected));
    }
}

TEST_CASE("import: too many records of one time are refused by its name", "[petlm][import]") {
    Singles given;
    for (std::uint32_t i = 0; i < 100; ++i)
        given.push_back({77, 100 - i, 0});
    CHECK_THAT(refusal(given, {10, 50}), contains("records of time 77"));
    CHECK(refusal(given, {10, 100}).empty());
}

TEST_CASE("import: records further out of order are refused", "[petlm][import]") {
    Singles given;
    for (std::uint32_t i = 0; i < 100; ++i)
        given.push_back({i, 1, 0});
    std::swap(given[10], given[20]);
    CHECK(refusal(given, {10, 1000}).empty());
    std::swap(given[40], given[95]);
    CHECK_THAT(refusal(given, {10, 1000}), contains("out of time order by more than 10 places"));
}

TEST_CASE("import: millions of records of one time", "[petlm][import]") {
    const TemporaryDirectory directory;
    constexpr std::uint32_t count = 2'200'000;
    std::string text = "time,crystal,energy\n";
    for (std::uint32_t i = 0; i < count; ++i)
        text += "5," + std::to_string((i * 7919U) % 2880U) + ",1\n";
    write_file(directory / "a.csv", text);
    const Outcome outcome =
        imported("csv", directory / "a.csv", scanner_file(directory), directory / "a.plm");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const Singles singles = read_records<gpu::Single>(directory / "a.plm", daemon::RecordKind::singles);
    CHECK(singles.size() == count);
    CHECK(std::is_sorted(singles.begin(), singles.end(),
                         [](const auto& a, const auto& b) { return !daemon::in_order(b, a); }));
}
