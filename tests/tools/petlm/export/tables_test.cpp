// Exports that are plain tables: CSV, HDF5, CoinStruct both ways.
#include <hdf5.h>

#include <algorithm>
#include <limits>

#include "daemon/listmode/reader.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

std::filesystem::path scanner_file(const TemporaryDirectory& directory) {
    const auto file = directory / "scanner.json";
    write_file(file, config::to_json(export_scanner()).dump());
    return file;
}

struct Half {
    std::uint32_t crystal;
    float energy;
    double time;
};

void put_pairs(const std::filesystem::path& file, const std::vector<std::array<Half, 2>>& all) {
    write_file(file, {reinterpret_cast<const char*>(all.data()), all.size() * sizeof all[0]});
}

Outcome imported(const TemporaryDirectory& directory, const std::filesystem::path& from,
                 const std::filesystem::path& to, const std::string& options = "") {
    return run_petlm("import --format coinstruct" + quoted(from) + "--scanner" +
                     quoted(scanner_file(directory)) + "--output" + quoted(to) + options);
}

template <class T>
std::vector<T> column(hid_t file, const std::string& name, hid_t type, std::string& units) {
    const hid_t set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    REQUIRE(set >= 0);
    const hid_t space = H5Dget_space(set);
    std::vector<T> out(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    REQUIRE(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) >= 0);
    const hid_t creation = H5Dget_create_plist(set);
    REQUIRE(H5Pget_layout(creation) == H5D_CHUNKED);
    unsigned flags = 0;
    std::size_t elements = 0;
    REQUIRE(H5Pget_filter_by_id2(creation, H5Z_FILTER_DEFLATE, &flags, &elements, nullptr, 0, nullptr,
                                 nullptr) >= 0);
    const hid_t attribute = H5Aopen(set, "units", H5P_DEFAULT);
    const hid_t text = H5Aget_type(attribute);
    REQUIRE(H5Tis_variable_str(text) > 0);
    char* words = nullptr;
    REQUIRE(H5Aread(attribute, text, static_cast<void*>(&words)) >= 0);
    units = words;
    H5free_memory(words);
    H5Tclose(text);
    H5Aclose(attribute);
    H5Pclose(creation);
    H5Sclose(space);
    H5Dclose(set);
    return out;
}

}  // namespace

TEST_CASE("csv: the output of petlm dump, for coincidences and singles", "[petlm][csv]") {
    const TemporaryDirectory directory;
    auto records = pairs(2000);
    for (auto& c : records)
        c.crystal_a %= 2880, c.crystal_b %= 2880;
    records[7].energy_a = 1e-30F;
    write_run(directory / "run", records);
    REQUIRE(exported("csv", directory / "run", directory / "a.csv").status == 0);
    const std::string text = read_file(directory / "a.csv");
    CHECK(text == run_petlm("dump" + quoted(directory / "run")).out);
    CHECK(std::count(text.begin(), text.end(), '\n') == 2001);
    CHECK_THAT(read_file(directory / "a.csv.README.txt"), contains("1600 prompts, 400 delayeds"));

    const auto singles = directory / "singles.plm";
    {
        daemon::ListModeOptions options;
        options.kind = daemon::RecordKind::singles;
        daemon::ListModeWriter writer(singles, options);
        writer.append(gpu::RecordVector<gpu::Single>{{5, 7, 511.5F}, {UINT64_MAX, 0, 1e10F}});
    }
    REQUIRE(exported("csv", singles, directory / "s.csv").status == 0);
    CHECK(read_file(directory / "s.csv") == "time,crystal,energy\n5,7,511.5\n18446744073709551615,0,1e+10\n");
    REQUIRE(exported("hdf5", singles, directory / "s.h5").status == 0);
    for (const char* format : {"castor", "stir", "coinstruct"}) {
        const Outcome outcome = exported(format, singles, directory / "no");
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains("holds singles"));
    }
}

TEST_CASE("hdf5: columns with units over several chunks, and the description of the run", "[petlm][hdf5]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {1, 2, 3}, 150'000);
    write_run(directory / "run", records);
    const Outcome outcome = exported("hdf5", directory / "run", directory / "a.h5");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const hid_t file = H5Fopen((directory / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    REQUIRE(file >= 0);
    std::string units;
    const auto read = [&]<class T>(const char* name, hid_t type, const char* expected, T) {
        auto values = column<T>(file, std::string("coincidences/") + name, type, units);
        CHECK(units == expected);
        REQUIRE(values.size() == records.size());
        return values;
    };
    const auto time = read("time", H5T_NATIVE_UINT64, "ticks", std::uint64_t{});
    const auto dt = read("dt", H5T_NATIVE_UINT32, "ticks", std::uint32_t{});
    const auto crystal_a = read("crystal_a", H5T_NATIVE_UINT32, "1", std::uint32_t{});
    const auto crystal_b = read("crystal_b", H5T_NATIVE_UINT32, "1", std::uint32_t{});
    const auto energy_a = read("energy_a", H5T_NATIVE_FLOAT, "keV", float{});
    const auto energy_b = read("energy_b", H5T_NATIVE_FLOAT, "keV", float{});
    const hid_t kinds = H5Tenum_create(H5T_NATIVE_UINT8);
    const std::uint8_t prompt = 0;
    const std::uint8_t delayed = 1;
    H5Tenum_insert(kinds, "prompt", &prompt);
    H5Tenum_insert(kinds, "delayed", &delayed);
    const auto kind = read("kind", kinds, "1", std::uint8_t{});
    H5Tclose(kinds);
    for (std::size_t i = 0; i < records.size(); ++i) {
        const gpu::Coincidence back{time[i],
                                    dt[i],
                                    crystal_a[i],
                                    crystal_b[i],
                                    energy_a[i],
                                    energy_b[i],
                                    static_cast<gpu::Kind>(kind[i])};
        if (!same(back, records[i])) FAIL("record " << i);
    }
    double tick_ps = 0;
    const hid_t attribute = H5Aopen(file, "tick_ps", H5P_DEFAULT);
    REQUIRE(H5Aread(attribute, H5T_NATIVE_DOUBLE, &tick_ps) >= 0);
    CHECK(tick_ps == 15.625);
    H5Aclose(attribute);
    for (const char* name : {"run_id", "start_utc", "scanner", "crystals", "window_ticks", "state"})
        CHECK(H5Aexists(file, name) > 0);
    CHECK(H5Lexists(file, "run_json", H5P_DEFAULT) > 0);
    H5Fclose(file);
}

TEST_CASE("coinstruct: export and import give the same records", "[petlm][coinstruct]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {-4, 7, 2}, 30'000);
    write_run(directory / "run", records);
    REQUIRE(exported("coinstruct", directory / "run", directory / "a.bin").status == 0);
    const auto prompts = of_kind(records, gpu::Kind::prompt);
    Bytes data(directory / "a.bin");
    REQUIRE(data.size() == prompts.size() * 32);
    for (const auto& c : prompts) {
        REQUIRE(data.take<std::uint32_t>() == c.crystal_a);
        REQUIRE(data.take<float>() == c.energy_a);
        REQUIRE(data.take<double>() == static_cast<double>(c.time));
        REQUIRE(data.take<std::uint32_t>() == c.crystal_b);
        REQUIRE(data.take<float>() == c.energy_b);
        REQUIRE(data.take<double>() == static_cast<double>(c.time + c.dt));
    }
    const Outcome outcome = imported(directory, directory / "a.bin", directory / "back.plm",
                                     "--delayeds" + quoted(directory / "a.delayeds.bin"));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK(same(read_coincidences(directory / "back.plm"), records));
    CHECK(run_petlm("verify" + quoted(directory / "back.plm")).status == 0);
    // Imported records can be exported with a scanner description on the command line.
    CHECK(exported("castor", directory / "back.plm", directory / "c").status == 64);
    CHECK(exported("castor", directory / "back.plm", directory / "c",
                   "--scanner" + quoted(scanner_file(directory)))
              .status == 0);
    const Outcome again = imported(directory, directory / "a.bin", directory / "back.plm");
    CHECK(again.status == 64);
    CHECK_THAT(again.out, contains("exists"));
    CHECK(imported(directory, directory / "a.bin", directory / "back.plm", "--force").status == 0);
    CHECK(same(read_coincidences(directory / "back.plm"), prompts));
}

TEST_CASE("coinstruct: pairs may come in another order, and times become whole ticks",
          "[petlm][coinstruct]") {
    const TemporaryDirectory directory;
    put_pairs(directory / "a.bin", {{{{9, 500.5F, 1000}, {3, 400, 990.75}}},
                                    {{{1, 511, 20}, {2, 512, 20}}},
                                    {{{5, 1, 20}, {4, 2, 20}}}});
    const Outcome outcome = imported(directory, directory / "a.bin", directory / "a.plm");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    CHECK_THAT(outcome.out, contains("1 times were not whole ticks"));
    CHECK(same(read_coincidences(directory / "a.plm"), {{20, 0, 1, 2, 511, 512, gpu::Kind::prompt},
                                                        {20, 0, 4, 5, 2, 1, gpu::Kind::prompt},
                                                        {990, 10, 3, 9, 400, 500.5F, gpu::Kind::prompt}}));
    CHECK(run_petlm("verify" + quoted(directory / "a.plm")).status == 0);
}

TEST_CASE("coinstruct: pairs up to a million places out of order are sorted, others refused",
          "[petlm][coinstruct]") {
    const TemporaryDirectory directory;
    std::vector<std::array<Half, 2>> all;
    for (std::uint32_t i = 0; i < 2'500'000; ++i)
        all.push_back({{{i % 2000, 511, 10.0 * (i ^ 0x7FFFFU)}, {5, 511, 10.0 * (i ^ 0x7FFFFU) + 3}}});
    put_pairs(directory / "a.bin", all);
    const Outcome sorted = imported(directory, directory / "a.bin", directory / "a.plm");
    CAPTURE(sorted.out);
    REQUIRE(sorted.status == 0);
    CHECK(run_petlm("verify" + quoted(directory / "a.plm")).status == 0);
    std::swap(all.front(), all.back());
    put_pairs(directory / "b.bin", all);
    const Outcome outcome = imported(directory, directory / "b.bin", directory / "b.plm");
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.out, contains("out of time order"));
    CHECK(names_in(directory.path()) == std::set<std::string>{"a.bin", "a.plm", "b.bin", "scanner.json"});
}

TEST_CASE("coinstruct: times that an f64 cannot hold are reported, and counted from the start they fit",
          "[petlm][coinstruct]") {
    const TemporaryDirectory directory;
    auto records = pairs(10);
    for (auto& c : records) {
        c.time += std::uint64_t{1} << 60U;
        c.crystal_a %= 2880;
        c.crystal_b %= 2880;
    }
    write_plm(directory / "a.plm", records, file_description(export_scanner()));
    CHECK_THAT(exported("coinstruct", directory / "a.plm", directory / "a.bin").out,
               contains("10 pairs have times above 2^53"));
    const Outcome outcome =
        exported("coinstruct", directory / "a.plm", directory / "b.bin", "--time-from-start");
    CHECK(outcome.out.find("2^53") == std::string::npos);
    Bytes data(directory / "b.bin");
    data.take<std::uint64_t>();
    CHECK(data.take<double>() == 10);  // the first one is a delayed
}

TEST_CASE("import refuses files that are not CoinStruct files of this scanner", "[petlm][coinstruct]") {
    const TemporaryDirectory directory;
    const Half good = {1, 511, 100};
    const auto refused = [&](const std::string& what, const std::array<Half, 2>& pair) {
        put_pairs(directory / "a.bin", {{{good, good}}, pair});
        const Outcome outcome = imported(directory, directory / "a.bin", directory / "a.plm");
        CAPTURE(what, outcome.out);
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("pair 1") && contains("a.bin"));
        CHECK(names_in(directory.path()) == std::set<std::string>{"a.bin", "scanner.json"});
    };
    refused("crystal", {{good, {2880, 511, 100}}});
    refused("nan", {{good, {1, 511, std::numeric_limits<double>::quiet_NaN()}}});
    refused("negative", {{good, {1, 511, -1}}});
    refused("huge", {{good, {1, 511, 1e20}}});
    refused("energy", {{{1, std::numeric_limits<float>::infinity(), 100}, good}});
    refused("energy below 0", {{{1, -1, 100}, good}});
    refused("far apart", {{good, {1, 511, 5e9}}});
    std::filesystem::resize_file(directory / "a.bin", 63);
    const Outcome cut = imported(directory, directory / "a.bin", directory / "a.plm");
    CHECK(cut.status == 1);
    CHECK_THAT(cut.out, contains("multiple of 32"));
    CHECK(imported(directory, directory / "none.bin", directory / "a.plm").status == 74);
    CHECK(run_petlm("import --format coinstruct" + quoted(directory / "a.bin") + "--scanner" +
                    quoted(directory / "a.bin") + "--output" + quoted(directory / "a.plm"))
              .status == 78);
    CHECK(run_petlm("import --format none" + quoted(directory / "a.bin") + "--scanner" +
                    quoted(scanner_file(directory)) + "--output" + quoted(directory / "a.plm"))
              .status == 64);
}

TEST_CASE("hdf5: the operator's data are attributes of a group", "[petlm][export]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", {});
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["operator"] = {{"nuclide", "F-18"}, {"activity_MBq", 37}, {"keys", {{"tracer", "FDG"}}}};
    write_file(directory / "run" / "run.json", run.dump());
    REQUIRE(exported("hdf5", directory / "run", directory / "run.h5").status == 0);
    CHECK_THAT(read_file(directory / "run.h5.README.txt"), contains("\"nuclide\":\"F-18\""));

    const hid_t file = H5Fopen((directory / "run.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    REQUIRE(file >= 0);
    double activity = 0;
    const hid_t attribute = H5Aopen_by_name(file, "operator", "activity_MBq", H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Aread(attribute, H5T_NATIVE_DOUBLE, &activity) >= 0);
    CHECK(activity == 37);
    H5Aclose(attribute);
    CHECK(H5Aexists_by_name(file, "operator", "nuclide", H5P_DEFAULT) > 0);
    CHECK(H5Aexists_by_name(file, "operator/keys", "tracer", H5P_DEFAULT) > 0);
    H5Fclose(file);
}
