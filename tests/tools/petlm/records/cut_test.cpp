// petlm cut: reads only the blocks that it needs.
#include "daemon/listmode/reader.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("cut: the index tells which blocks to read", "[petlm][cut]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const auto records = pairs(2000);  // one every ten ticks from 1000 on, 126 in a block
    auto description = file_description(export_scanner());
    description["crystals"] = 5000;
    write_plm(file, records, description);
    const auto cut = [&](std::uint64_t from, std::uint64_t to) {
        const auto out = directory / "cut.plm";
        const Outcome outcome =
            run_petlm("cut --force" + quoted(file) + "-o" + quoted(out) + "--from-ticks " +
                      std::to_string(from) + " --to-ticks " + std::to_string(to));
        CAPTURE(from, to, outcome.out);
        if (outcome.status != 0) return outcome.status;
        CHECK_THAT(outcome.out, contains(" of 2000 coincidences"));
        gpu::RecordVector<gpu::Coincidence> expected;
        for (const auto& c : records) {
            if (c.time >= from && c.time < to) expected.push_back(c);
        }
        CHECK(same(read_coincidences(out), expected));
        return 0;
    };
    std::mt19937_64 random(5);
    for (int round = 0; round < 40; ++round) {
        const std::uint64_t from = random() % 22'000;
        CHECK(cut(from, from + 1 + random() % 22'000) == 0);
    }
    CHECK(cut(0, 1000) == 0);
    CHECK(cut(20'991, 20'992) == 0);
    CHECK(cut(0, UINT64_MAX) == 0);
    for (const std::uint64_t empty : {0UL, 1000UL, 1005UL, 10'000UL, 30'000UL})
        CHECK(cut(empty, empty) == 0);
    CHECK(cut(1001, 1000) == 64);

    // Damage outside the interval does not matter; damage inside is an error.
    std::string bytes = read_file(file);
    bytes[4096 + 8 * 4096 + 2000] ^= 1;  // block 8: records 1008 to 1133
    write_file(file, bytes);
    CHECK(cut(1000, 11'000) == 0);
    CHECK(cut(12'340, 20'000) == 0);
    CHECK(cut(1000, 11'081) == 1);
    CHECK(cut(12'330, 12'340) == 1);
    // Without an index everything must be read.
    std::filesystem::resize_file(file, bytes.size() - 1);
    CHECK(cut(1000, 11'000) == 1);
}
