// Another program removes, replaces or cuts list-mode files while they are written.
#include <functional>
#include <thread>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/system/file.hpp"
#include "tests/daemon/listmode/support.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

struct Loss {
    const char* says;
    std::function<void(const std::filesystem::path&)> happens;
};

const std::vector<Loss>& losses() {
    static const std::vector<Loss> all = {
        {"has removed or renamed it", [](const auto& file) { std::filesystem::remove(file); }},
        {"has removed or renamed it",
         [](const auto& file) { std::filesystem::rename(file, file.string() + ".moved"); }},
        {"has replaced it",
         [](const auto& file) {
             std::filesystem::copy_file(file, file.string() + ".copy");
             std::filesystem::rename(file.string() + ".copy", file);
         }},
        {"has cut it to 10 of ", [](const auto& file) { std::filesystem::resize_file(file, 10); }}};
    return all;
}

std::string failure_of(const FileIdentity& identity) {
    try {
        identity.check();
    } catch (const std::system_error& error) {
        return error.what();
    }
    return "";
}

ListModeOptions blocks_of_four() {
    ListModeOptions options;
    options.block_bytes = 192;  // four records
    options.sync_interval_ms = 3'600'000;
    return options;
}

}  // namespace

TEST_CASE("A file that is no longer what was written is recognised", "[listmode][lost]") {
    for (const Loss& loss : losses()) {
        CAPTURE(loss.says);
        const TemporaryDirectory directory;
        File file(directory / "a");
        CHECK(failure_of(file.identity()).empty());
        file.append(std::string(100, 'x'));
        CHECK(failure_of(file.identity()).empty());
        CHECK(failure_of(FileIdentity::of(directory / "a")).empty());
        loss.happens(directory / "a");
        const std::string failure = failure_of(file.identity());
        CHECK_THAT(failure, contains((directory / "a").string()) && contains(loss.says));
        file.close();
        CHECK(failure_of(file.identity()) == failure);
    }
    const TemporaryDirectory directory;
    File grows(directory / "b");
    grows.append(std::string(100, 'x'));
    std::filesystem::resize_file(directory / "b", 200);
    CHECK(failure_of(grows.identity()).empty());
    const File device("/dev/null", IfExists::overwrite);
    CHECK(failure_of(device.identity()).empty());
}

TEST_CASE("A writer that loses its file fails", "[listmode][lost]") {
    for (const Loss& loss : losses()) {
        for (const bool more : {false, true}) {
            CAPTURE(loss.says, more);
            const TemporaryDirectory directory;
            const auto file = directory / "r.plm";
            ListModeWriter writer(file, blocks_of_four());
            writer.append(pairs(8));
            REQUIRE(eventually([&] { return writer.counts().written == 8; }));
            loss.happens(file);
            if (more) writer.append(pairs(8, 8));
            const ListModeCounts counts = writer.finish();
            CHECK(counts.written == 8);
            CHECK(counts.write_failed == (more ? 8 : 0));
            CHECK_THAT(writer.failure(), contains(file.string()) && contains(loss.says));
        }
    }
}

TEST_CASE("A writer without data notices that its file has gone", "[listmode][lost]") {
    const TemporaryDirectory directory;
    const ListModeWriter writer(directory / "r.plm", blocks_of_four());
    std::filesystem::remove(directory / "r.plm");
    CHECK(eventually([&] { return !writer.failure().empty(); }));
}

TEST_CASE("A file that was cut keeps no hole", "[listmode][lost]") {
    const TemporaryDirectory directory;
    const auto file = directory / "r.plm";
    {
        ListModeWriter writer(file, blocks_of_four());
        writer.append(pairs(16));
        REQUIRE(eventually([&] { return writer.counts().written == 16; }));
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
        writer.append(pairs(16, 16));
        writer.finish();
        CHECK_FALSE(writer.failure().empty());
    }
    ListModeReader reader(file);
    while (reader.next()) {
    }
    CHECK(reader.condition().state == FileState::truncated);
    CHECK(reader.condition().records == 12);
}

TEST_CASE("An earlier part of a series that was lost is noticed", "[listmode][lost]") {
    const TemporaryDirectory directory;
    ListModeOptions options = blocks_of_four();
    options.split.ticks = 40;  // every block starts a file
    ListModeWriter writer(directory / "r.plm", options);
    writer.append(pairs(16));
    REQUIRE(eventually([&] { return writer.counts().written == 16; }));
    std::filesystem::resize_file(directory / "r-0002.plm", 100);
    CHECK(eventually([&] { return !writer.failure().empty(); }));  // within a few looks
    CHECK_THAT(writer.failure(), contains("r-0002.plm: another program has cut it to 100 of "));
    writer.finish();
    std::vector<std::string> lost;
    for (const FileIdentity& identity : writer.identities())
        lost.push_back(failure_of(identity));
    REQUIRE(lost.size() == 4);
    CHECK(lost[0].empty());
    CHECK_FALSE(lost[1].empty());
    CHECK(lost[3].empty());
}
