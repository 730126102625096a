// The cache of sensitivities: the same image with it, and never that of anything else.
#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/image/sensitivity_cache.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

Outcome cached(const TemporaryDirectory& directory, const std::string& options) {
    return shell("XDG_CACHE_HOME='" + (directory / "cache").string() + "' " + PETLM_PROGRAM " image" +
                 quoted(directory / "run") + "--output" + quoted(directory / "out") +
                 "--depth-mm 0 --backend cpu --iterations 1 --force " + options);
}

}  // namespace

TEST_CASE("image: a kept sensitivity is used for its key alone, and only if it is whole",
          "[petlm][image][cache]") {
    const TemporaryDirectory directory;
    const std::filesystem::path cache = directory / "cache";
    int computed = 0;
    std::string from;
    const auto of = [&](const std::string& key, float value) {
        return image::cached_sensitivity(
            cache, key, 100,
            [&] {
                ++computed;
                return std::vector<float>(100, value);
            },
            from);
    };
    const std::string one(64, 'a');
    const std::string other(64, 'b');
    CHECK(of(one, 1)[7] == 1);
    CHECK_THAT(from, contains("computed and kept in"));
    CHECK(of(one, 2)[7] == 1);
    CHECK_THAT(from, contains("from the cache"));
    CHECK(of(other, 3)[7] == 3);
    CHECK(computed == 2);
    const std::filesystem::path file = cache / ("sensitivity-" + one + ".bin");
    const std::string whole = read_file(file);
    std::string changed = whole;
    changed[200] = static_cast<char>(changed[200] ^ 1);
    const std::string of_other = read_file(cache / ("sensitivity-" + other + ".bin"));
    for (const std::string& bad :
         {changed, whole.substr(0, whole.size() - 1), whole + "x", std::string(), of_other}) {
        write_file(file, bad);
        computed = 0;
        CHECK(of(one, 1)[7] == 1);
        CHECK(computed == 1);
        CHECK(read_file(file) == whole);
    }
    // A place that cannot be written to costs only time.
    write_file(directory / "file", "");
    const auto kept = image::cached_sensitivity(
        directory / "file", one, 3, [] { return std::vector<float>(3, 5); }, from);
    CHECK(kept == std::vector<float>(3, 5));
    CHECK_THAT(from, contains("not kept"));
}

TEST_CASE("image: the key of a sensitivity has all that it depends on", "[petlm][image][cache]") {
    const config::Scanner scanner = short_scanner();
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    const image::Grid grid{{16, 16, 8}, 3};
    const auto factors_of = [&](double depth_mm, const corrections::LineOptions& options = {}) {
        return corrections::LineFactors(scanner, config::DepthOfInteraction::fixed(depth_mm), options);
    };
    const corrections::LineFactors factors = factors_of(2);
    const auto key_of = [&](const config::Scanner& s, const gpu::PairRule& r,
                            const corrections::LineFactors& f, const image::Grid& g,
                            const std::string& digest) { return image::sensitivity_key(s, r, f, g, digest); };
    std::set<std::string> keys;
    keys.insert(key_of(scanner, rule, factors, grid, "a"));
    CHECK(key_of(scanner, rule, factors_of(2), grid, "a") == *keys.begin());
    keys.insert(key_of(scanner, rule, factors, grid, "b"));
    keys.insert(key_of(scanner, rule, factors_of(3), grid, "a"));
    keys.insert(key_of(scanner, rule, factors_of(2, {{}, {"0,0,0,9,20"}}), grid, "a"));
    keys.insert(key_of(scanner, rule, factors_of(2, {{}, {"0,0,0,9,20,0.1"}}), grid, "a"));
    const corrections::LineFactors absorbed(scanner, config::DepthOfInteraction(scanner.dimensions));
    keys.insert(key_of(scanner, rule, absorbed, grid, "a"));
    keys.insert(key_of(scanner, rule, factors, {{16, 16, 8}, 3.1}, "a"));
    keys.insert(key_of(scanner, rule, factors, {{16, 16, 9}, 3}, "a"));
    gpu::PairRule narrow = rule;
    narrow.max_ring_difference = 4;
    keys.insert(key_of(scanner, narrow, factors, grid, "a"));
    config::Scanner wide = scanner;
    wide.dimensions.crystal_length_mm += 1;
    keys.insert(key_of(wide, rule, factors, grid, "a"));
    CHECK(keys.size() == 10);
}

TEST_CASE("petlm image: the second image of a kind takes the sensitivity from the cache, with the same bytes",
          "[petlm][image][cache]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = short_scanner();
    write_run(directory / "run", cylinder_source(scanner, {0, 0, 0}, 6, 10, 5000), scanner);
    auto normalisation = normalisation::Normalisation::even(scanner.geometry);
    normalisation.efficiency[7] = 0.5F;
    save(directory / "norm.h5", scanner.geometry, normalisation);
    const auto image_with = [&](const std::string& options, const char* from) {
        const Outcome outcome = cached(directory, options);
        CAPTURE(options, outcome.out);
        REQUIRE(outcome.status == 0);
        CHECK_THAT(outcome.out, contains(std::string("Sensitivity: ") + from));
        return read_file(directory / "out" / "image.nii");
    };
    const std::string corrected =
        "--normalisation" + quoted(directory / "norm.h5") + " --attenuation 0,0,0,8,20 --scatter none";
    for (const std::string& options : {std::string(), corrected}) {
        const std::string first = image_with(options, "computed and kept");
        CHECK(image_with(options, "from the cache") == first);
        CHECK(image_with(options + " --no-cache", "computed.") == first);
    }
    // Another file of the same name.
    normalisation.efficiency[5] = 0;
    normalisation.efficiency[70] = 0.3F;
    save(directory / "norm.h5", scanner.geometry, normalisation);
    image_with(corrected, "computed and kept");
    image_with("--voxel-mm 4", "computed and kept");
}
