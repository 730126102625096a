// Files of tags: made with the first one, readable up to the last whole block after a cut at any byte.
#include <algorithm>
#include <filesystem>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

gpu::RecordVector<gpu::Tag> tags(std::uint64_t count, std::uint64_t first = 0) {
    gpu::RecordVector<gpu::Tag> all;
    for (std::uint64_t i = first; i < first + count; ++i)
        all.push_back({10 * i, static_cast<std::uint32_t>(i * i), static_cast<std::uint16_t>(i % 3),
                       static_cast<std::uint8_t>(i % 16), static_cast<std::uint8_t>(i % 6)});
    return all;
}

ListModeOptions options() {
    ListModeOptions o;
    o.kind = RecordKind::tags;
    o.block_bytes = 256;  // 12 tags
    o.on_first_record = true;
    return o;
}

}  // namespace

TEST_CASE("without a tag there is no file") {
    const TemporaryDirectory directory;
    ListModeWriter writer(directory / "tags.plm", options());
    const ListModeCounts counts = writer.finish();
    CHECK(counts.bytes == 0);
    CHECK(writer.parts().empty());
    CHECK(writer.identities().empty());
    CHECK(writer.failure().empty());
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("tags are written with the first one, split, and read") {
    const TemporaryDirectory directory;
    ListModeOptions o = options();
    o.split.ticks = 400;
    ListModeWriter writer(directory / "tags.plm", o);
    writer.append(tags(30));
    writer.append(tags(70, 30));
    CHECK(writer.finish().written == 100);
    gpu::RecordVector<gpu::Tag> all;
    for (const ListModePart& part : writer.parts()) {
        CHECK(part.first_record == all.size());
        const auto some =
            read_all<gpu::Tag>(directory / part.name, [](const auto& reader) { return reader.tags(); });
        CHECK(some.size() == part.records);
        CHECK(some.front().time == part.first_time);
        CHECK(some.back().time == part.last_time);
        all.insert(all.end(), some.begin(), some.end());
    }
    CHECK(writer.parts().size() > 2);
    CHECK(writer.identities().size() == writer.parts().size());
    CHECK(std::ranges::equal(all, tags(100)));
    ListModeReader reader(directory / "tags-0001.plm");
    CHECK(reader.kind() == RecordKind::tags);
    CHECK(std::string(name_of(reader.kind())) == "tags");
    REQUIRE(reader.next());
    CHECK_THROWS_AS(reader.singles(), std::logic_error);
}

TEST_CASE("a file of tags that is cut anywhere has its whole blocks") {
    const TemporaryDirectory directory;
    {
        ListModeWriter writer(directory / "tags.plm", options());
        writer.append(tags(100));
        writer.finish();
    }
    const gpu::RecordVector<gpu::Tag> all = tags(100);
    const std::string whole = read_file(directory / "tags.plm");
    std::size_t most = 0;
    for (std::size_t cut = 4096; cut < whole.size(); cut += 7) {
        write_file(directory / "cut.plm", whole.substr(0, cut));
        ListModeReader reader(directory / "cut.plm");
        std::size_t count = 0;
        while (reader.next()) {
            for (const gpu::Tag& tag : reader.tags())
                REQUIRE(tag == all[count++]);
        }
        const std::size_t blocks = std::min<std::size_t>((cut - 4096) / 256, 8);
        REQUIRE(count >= blocks * 12);
        most = std::max(most, count);
    }
    CHECK(most == 100);
}

TEST_CASE("a file of tags that cannot be made fails the writer and counts") {
    const TemporaryDirectory directory;
    ListModeWriter writer(directory / "no" / "tags.plm", options());
    writer.append(tags(20));
    const ListModeCounts counts = writer.finish();
    CHECK(counts.appended == 20);
    CHECK(counts.written == 0);
    CHECK(counts.write_failed == 20);
    CHECK(writer.failure().find("tags.plm") != std::string::npos);
    CHECK(writer.parts().empty());
}
