// The ledger of a run over time (ledger.csv).
#include "tools/petlm/records/ledger_rows.hpp"

#include "daemon/run/directory.hpp"
#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

namespace {

void check(const petlm::LedgerRows& rows) {
    require(rows.from_ticks.size() == rows.size(), "a row has a start and an end");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        require(rows.from_ticks[i] <= rows.to_ticks[i], "a row does not end before it starts");
        require(i == 0 || rows.from_ticks[i] == rows.to_ticks[i - 1], "rows follow each other");
    }
    for (const auto& [name, counts] : rows.counters)
        require(counts.size() == rows.size(), "a number for each row");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory run;
    (void)run.write(daemon::ledger_file, {data, size});
    const fuzz::MemoryBound bound((std::size_t{16} << 20) + 200 * size);
    const petlm::LedgerOverTime ledger = petlm::ledger_over_time(run.path());
    require(ledger.trouble.empty() || fuzz::says_what_was_expected(ledger.trouble) || !ledger.rows,
            "trouble says what was expected");
    if (!ledger.rows) return 0;
    fuzz::accept();
    check(*ledger.rows);
    for (const std::size_t most : {1, 3, 100}) {
        const petlm::LedgerRows few = petlm::thinned(*ledger.rows, most);
        check(few);
        require(few.from_ticks.front() == ledger.rows->from_ticks.front() &&
                    few.to_ticks.back() == ledger.rows->to_ticks.back(),
                "fewer rows are of the same time");
        for (const auto& [name, counts] : few.counters) {
            std::int64_t sum = 0;
            for (const std::int64_t count : counts)
                sum += count;
            for (const std::int64_t count : ledger.rows->counters.at(name))
                sum -= count;
            require(sum == 0, "fewer rows have the same counts");
        }
    }
    return 0;
}
