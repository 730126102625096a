// Where rows of the ledger over time end.
#include "daemon/run/row_cadence.hpp"

#include "tests/support/catch.hpp"

using petacq::daemon::RowCadence;

TEST_CASE("rows end with the first watermark past a multiple of their length") {
    RowCadence cadence(1000, 100);
    CHECK_FALSE(cadence.row_ends(1099, 900));
    CHECK(cadence.row_ends(1105, 900));
    CHECK_FALSE(cadence.row_ends(1199, 900));
    CHECK(cadence.row_ends(1200, 900));
    // A long gap makes one long row; the multiples stay where they are.
    CHECK(cadence.row_ends(1777, 900));
    CHECK_FALSE(cadence.row_ends(1799, 900));
    CHECK(cadence.row_ends(1800, 900));
    CHECK(cadence.first_row(1800, 900) == 1000);
}

TEST_CASE("rows count from the first frame when it comes after the start of the run") {
    RowCadence cadence(1000, 100);
    CHECK_FALSE(cadence.row_ends(5000, UINT64_MAX));
    CHECK_FALSE(cadence.row_ends(5000, 4950));
    CHECK(cadence.row_ends(5040, 4940));
    CHECK(cadence.first_row(6000, 3000) == 4940);  // settled by the first row
    CHECK_FALSE(cadence.row_ends(5139, 3000));
    CHECK(cadence.row_ends(5140, 3000));
}

TEST_CASE("the only row of a run lies within it") {
    CHECK(RowCadence(1000, 100).first_row(1050, 1020) == 1020);
    CHECK(RowCadence(1000, 100).first_row(1050, 900) == 1000);
    CHECK(RowCadence(1000, 100).first_row(1050, UINT64_MAX) == 1050);  // no frame came
    CHECK(RowCadence(1000, 100).first_row(1000, UINT64_MAX) == 1000);
    CHECK(RowCadence(1000, 100).first_row(500, 2000) == 1000);
}

TEST_CASE("without a length no row ends before the run") {
    RowCadence cadence(1000, 0);
    CHECK_FALSE(cadence.row_ends(UINT64_MAX, 1000));
}

TEST_CASE("rows at the end of the range of time") {
    RowCadence cadence(UINT64_MAX - 50, 100);
    CHECK_FALSE(cadence.row_ends(UINT64_MAX - 1, 0));
    CHECK(cadence.row_ends(UINT64_MAX, 0));
}
