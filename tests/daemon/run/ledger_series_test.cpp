// The ledger over time: rows add up, even if the disk fails.
#include "daemon/run/ledger_series.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <sstream>

#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const std::string& text) {
    std::istringstream lines(text);
    std::vector<std::string> names;
    std::vector<Row> rows;
    for (std::string line; std::getline(lines, line);) {
        std::vector<std::string> fields;
        std::istringstream in(line + ",");
        for (std::string field; std::getline(in, field, ',');)
            fields.push_back(field);
        if (names.empty()) {
            names = fields;
            continue;
        }
        REQUIRE(fields.size() == names.size());
        rows.emplace_back();
        for (std::size_t i = 0; i < names.size(); ++i)
            rows.back()[names[i]] = fields[i];
    }
    return rows;
}

std::int64_t sum(const std::vector<Row>& rows, const std::string& column) {
    std::int64_t total = 0;
    for (const Row& row : rows)
        total += std::stoll(row.at(column));
    return total;
}

daemon::Ledger ledger_number(std::uint64_t i) {
    daemon::Ledger ledger;
    ledger.datagrams.accepted = 100 * i;
    ledger.datagrams.lost = i % 5;
    ledger.frames.received = 7000 * i;
    ledger.frames.late = i * i;
    ledger.singles.prompts = 3 * i;
    return ledger;
}

}  // namespace

TEST_CASE("rows of the ledger over time add up to the ledger", "[ledger]") {
    const TemporaryDirectory directory;
    daemon::LedgerSeries series(directory / "ledger.csv");
    series.start(50, 10, ledger_number(2));
    for (std::uint64_t i = 3; i < 40; ++i) {
        REQUIRE(series.row_ends(50 + 10 * i, 0));
        series.add(50 + 10 * i, ledger_number(i));
    }
    series.add_last(1000, 0, ledger_number(44));
    series.finish();
    series.finish();
    CHECK(series.status().failure.empty());
    const auto rows = rows_of(read_file(directory / "ledger.csv"));
    CHECK(rows.size() == 38);
    CHECK(series.status().rows == rows.size());
    CHECK(rows.front().at("from_ticks") == "50");
    CHECK(rows.front().at("to_ticks") == "80");
    CHECK(rows.back().at("to_ticks") == "1000");
    for (std::size_t i = 1; i < rows.size(); ++i)
        CHECK(rows[i].at("from_ticks") == rows[i - 1].at("to_ticks"));
    CHECK(sum(rows, "datagrams.accepted") == 4200);
    CHECK(sum(rows, "datagrams.lost") == 2);
    CHECK(rows[2].at("datagrams.lost") == "-4");  // taken back: from 4 to 0
    CHECK(sum(rows, "frames.late") == 44 * 44 - 4);
    CHECK(sum(rows, "singles.prompts") == 126);
}

TEST_CASE("the loss of the rows adds up to that of the run", "[ledger]") {
    const TemporaryDirectory directory;
    daemon::LedgerSeries series(directory / "ledger.csv");
    daemon::Ledger total;
    total.datagrams.lost = 1;
    series.start(0, 10, total);
    const daemon::Ledger at_start = total;
    REQUIRE(series.row_ends(10, 0));
    total.datagrams.lost = 2;  // one more
    series.add(10, total);
    REQUIRE(series.row_ends(20, 0));
    total.datagrams.lost = 1;  // the one from before the run arrives
    total.datagrams.recovered = 1;
    series.add(20, total);
    series.add_last(30, 0, total);
    series.finish();
    const auto rows = rows_of(read_file(directory / "ledger.csv"));
    CHECK(rows[0].at("datagrams.lost") == "1");
    CHECK(rows[1].at("datagrams.lost") == "0");
    CHECK(sum(rows, "datagrams.lost") == static_cast<std::int64_t>((total - at_start).datagrams.lost));
}

TEST_CASE("the first row starts with the first frame of the run", "[ledger]") {
    const TemporaryDirectory directory;
    daemon::LedgerSeries series(directory / "ledger.csv");
    series.start(50, 100, ledger_number(1));
    CHECK_FALSE(series.row_ends(1000, UINT64_MAX));  // no frame yet
    CHECK_FALSE(series.row_ends(1499, 1400));
    CHECK(series.row_ends(1510, 1400));
    series.add(1510, ledger_number(3));
    CHECK_FALSE(series.row_ends(1599, 1300));  // settled by now
    series.add_last(1599, 1300, ledger_number(4));
    series.finish();
    const auto rows = rows_of(read_file(directory / "ledger.csv"));
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].at("from_ticks") == "1400");
    CHECK(rows[0].at("to_ticks") == "1510");
    CHECK(rows[0].at("datagrams.accepted") == "200");
    CHECK(rows[1].at("to_ticks") == "1599");
    CHECK(rows[1].at("datagrams.accepted") == "100");
}

TEST_CASE("loss that cannot be known has no number", "[ledger]") {
    const TemporaryDirectory directory;
    daemon::Ledger bare = ledger_number(3);
    bare.numbered = false;
    daemon::LedgerSeries series(directory / "ledger.csv");
    series.start(0, 0, daemon::Ledger{});
    series.add_last(10, 0, bare);
    series.finish();
    const auto rows = rows_of(read_file(directory / "ledger.csv"));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].at("datagrams.lost").empty());
    CHECK(rows[0].at("datagrams.accepted") == "300");
}

TEST_CASE("rows are on the disk while the run goes on", "[ledger]") {
    const TemporaryDirectory directory;
    daemon::LedgerSeries series(directory / "ledger.csv", std::chrono::milliseconds(1));
    series.start(0, 1, ledger_number(0));
    for (std::uint64_t i = 1; i < 5; ++i) {
        REQUIRE(series.row_ends(i, 0));
        series.add(i, ledger_number(i));
        // No later row triggers its sync.
        while (series.status().synced < i)
            std::this_thread::yield();
        CHECK(rows_of(read_file(directory / "ledger.csv")).size() == i);
    }
    series.add_last(5, 0, ledger_number(5));
    series.finish();
    CHECK(series.status().synced == 5);
}

TEST_CASE("a hanging disk makes longer rows and delays no other thread", "[ledger]") {
    const TemporaryDirectory directory;
    const auto pipe = directory / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader =
        ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);  // NOLINT(cppcoreguidelines-pro-type-vararg)
    REQUIRE(reader >= 0);
    constexpr std::uint64_t last = 50'000;
    std::string text;
    {
        daemon::LedgerSeries series(pipe);
        series.start(0, 1, ledger_number(0));
        for (std::uint64_t i = 1; i < last; ++i) {
            if (!series.row_ends(i, 0)) FAIL("no row ends at " << i);
            series.add(i, ledger_number(i));  // nobody reads: the pipe is full after some hundred rows
        }
        series.add_last(last, 0, ledger_number(last));
        std::thread drain([&] {
            std::vector<char> buffer(1 << 16);
            for (;;) {
                const ssize_t got = ::read(reader, buffer.data(), buffer.size());
                if (got == 0) break;
                if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
                if (got < 0) std::this_thread::yield();
            }
        });
        series.finish();
        drain.join();
        CHECK(series.status().rows < 5000);
    }
    ::close(reader);
    const auto rows = rows_of(text);
    CHECK(rows.size() > 100);
    CHECK(rows.size() < 5000);
    CHECK(sum(rows, "datagrams.accepted") == 100 * static_cast<std::int64_t>(last));
    CHECK(sum(rows, "frames.received") == 7000 * static_cast<std::int64_t>(last));
    CHECK(rows.back().at("to_ticks") == std::to_string(last));
}

TEST_CASE("a full disk ends the ledger over time, and says why", "[ledger]") {
    daemon::LedgerSeries series("/dev/full");
    series.start(0, 0, daemon::Ledger{});
    series.add_last(10, 0, ledger_number(1));
    series.finish();
    CHECK_THAT(series.status().failure, contains("No space left"));
    CHECK(series.status().rows == 0);
    CHECK(series.status().synced == 0);
    CHECK_THROWS_AS(daemon::LedgerSeries("/nonexistent/ledger.csv"), std::system_error);
}

TEST_CASE("a disk that fills up leaves whole rows, and their number is right", "[ledger]") {
    const TemporaryDirectory directory;
    const auto file = directory / "ledger.csv";
    FaultyDisk disk;
    disk.take(2000);  // the line of names and some rows
    daemon::LedgerSeries series(file);
    series.start(0, 1, ledger_number(0));
    for (std::uint64_t i = 1; i < 100; ++i) {
        REQUIRE(series.row_ends(i, 0));
        series.add(i, ledger_number(i));
        // One write for each row, as long as there is room.
        while (series.status().rows < i && series.status().failure.empty())
            std::this_thread::yield();
    }
    series.add_last(100, 0, ledger_number(100));
    series.finish();
    CHECK_THAT(series.status().failure, contains(file.string()) && contains("No space left"));
    CHECK(series.status().rows > 0);
    const std::string text = read_file(file);
    CHECK(text.size() < 2000);
    CHECK(text.back() == '\n');
    CHECK(rows_of(text).size() == series.status().rows);
}

TEST_CASE("a sync that fails ends the ledger over time", "[ledger]") {
    const TemporaryDirectory directory;
    FaultyDisk disk;
    disk->sync = [](int) {
        errno = EIO;
        return -1;
    };
    daemon::LedgerSeries series(directory / "ledger.csv");
    series.start(0, 0, daemon::Ledger{});
    series.add_last(10, 0, ledger_number(1));
    series.finish();
    CHECK_THAT(series.status().failure, contains("sync failed"));
    CHECK(series.status().rows == 1);
    CHECK(series.status().synced == 0);
}
