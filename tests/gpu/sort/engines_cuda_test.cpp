// Every engine on every kind of input, against std::stable_sort.
//
//   PETACQ_SORT_MAX=N   no input longer than N, for a run under a slow tool
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/sort/sort.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/gpu/sort/inputs.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::config::SortEngine;
using petacq::gpu::cuda::check;
namespace sort = petacq::gpu::sort;

const std::vector<SortEngine> engines = [] {
    std::vector<SortEngine> all = sort::engines();
    all.push_back(SortEngine::automatic);
    return all;
}();

std::size_t longest() {
    const char* text = std::getenv("PETACQ_SORT_MAX");
    return text == nullptr ? 2'500'003 : std::strtoull(text, nullptr, 10);
}

constexpr std::size_t guard = 64;  // words before and after the output
constexpr unsigned char guard_byte = 0xA5;

/// Arrays on the device with guards around them.
class Arrays {
  public:
    explicit Arrays(std::size_t room)
        : words_(memory().device<std::uint64_t>(room + 2 * guard)), room_(room) {}
    std::uint64_t* data() { return words_ + guard; }
    void clear() {
        check(cudaMemset(words_, guard_byte, (room_ + 2 * guard) * sizeof(std::uint64_t)), "cudaMemset",
              "a test");
    }
    void fill(const std::vector<std::uint64_t>& from) {
        clear();
        check(cudaMemcpy(data(), from.data(), from.size() * sizeof(std::uint64_t), cudaMemcpyHostToDevice),
              "cudaMemcpy", "a test");
    }
    /// The first `count` words; throws if a guard was overwritten.
    std::vector<std::uint64_t> read(std::size_t count) {
        std::vector<std::uint64_t> all(count + 2 * guard);
        check(cudaMemcpy(all.data(), words_, all.size() * sizeof(std::uint64_t), cudaMemcpyDeviceToHost),
              "cudaMemcpy", "a test");
        std::uint64_t untouched = 0;
        std::memset(&untouched, guard_byte, sizeof untouched);
        for (std::size_t i = 0; i < guard; ++i) {
            if (all[i] != untouched || all[guard + count + i] != untouched)
                throw std::runtime_error("written beside the array");
        }
        return {all.begin() + guard, all.begin() + guard + static_cast<std::ptrdiff_t>(count)};
    }

  private:
    static petacq::gpu::cuda::Memory& memory() {
        static petacq::gpu::cuda::Memory all(petacq::gpu::cuda::Memory::Purpose::use);
        return all;
    }
    std::uint64_t* words_;
    std::size_t room_;
};

/// The arrays for sorting up to `room` items.
struct Bench {
    explicit Bench(std::size_t room)
        : in_key(room), in_value(room), out_key(room), out_value(room), scratch(scratch_words(room)) {}
    static std::size_t scratch_words(std::size_t room) {
        std::size_t most = 0;
        for (const SortEngine engine : engines)
            most = std::max(most, sort::scratch_bytes(engine, static_cast<std::uint32_t>(room)));
        return most / 8 + 1;
    }
    Arrays in_key, in_value, out_key, out_value, scratch;
    petacq::gpu::cuda::Stream stream;

    /// The first error, or "".
    std::string try_sort(SortEngine engine, const std::vector<Item>& items, int bits,
                         const std::vector<Item>& expected) {
        const std::size_t n = items.size();
        out_key.clear();
        out_value.clear();
        scratch.clear();
        // The stream of the sort does not wait for the default stream.
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "a test");
        const auto count = static_cast<std::uint32_t>(n);
        const std::size_t bytes = sort::scratch_bytes(engine, count);
        sort::launch(engine, scratch.data(), bytes, {in_key.data(), in_value.data()},
                     {out_key.data(), out_value.data()}, count, bits, stream);
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "a test");
        const std::vector<std::uint64_t> key = out_key.read(n);
        const std::vector<std::uint64_t> value = out_value.read(n);
        scratch.read((bytes + 7) / 8);
        for (std::size_t i = 0; i < n; ++i) {
            if (Item{key[i], value[i]} == expected[i]) continue;
            return "item " + std::to_string(i) + ": " + std::to_string(key[i]) + " with " +
                   std::to_string(value[i]) + ", expected " + std::to_string(expected[i].key) + " with " +
                   std::to_string(expected[i].value);
        }
        return {};
    }

    /// Whether the input is as it was.
    bool kept(const std::vector<Item>& items) {
        const std::vector<std::uint64_t> key = in_key.read(items.size());
        const std::vector<std::uint64_t> value = in_value.read(items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (Item{key[i], value[i]} != items[i]) return false;
        }
        return true;
    }

    void load(const std::vector<Item>& items) {
        std::vector<std::uint64_t> words(items.size());
        for (std::size_t i = 0; i < items.size(); ++i)
            words[i] = items[i].key;
        in_key.fill(words);
        for (std::size_t i = 0; i < items.size(); ++i)
            words[i] = items[i].value;
        in_value.fill(words);
    }
};

void check_lengths(const std::vector<std::size_t>& lengths, int repeats,
                   const std::vector<Shape>& shapes = all_shapes()) {
    std::vector<std::size_t> wanted;
    for (const std::size_t length : lengths) {
        if (length <= longest()) wanted.push_back(length);
    }
    if (wanted.empty()) return;
    Bench bench(wanted.back());
    const std::vector<int> widths{36, 64, 17, 8, 40, 1, 33, 63};
    std::size_t turn = 0;
    for (const std::size_t length : wanted) {
        for (const Shape shape : shapes) {
            const std::uint64_t seed = ++turn;
            const int bits = widths[turn % widths.size()];
            const std::vector<Item> items = make_items(shape, length, bits, seed);
            bench.load(items);
            const std::vector<Item> stable = sorted_copy(items, bits, false);
            const std::vector<Item> total = sorted_copy(items, bits, true);
            for (const SortEngine engine : engines) {
                for (int r = 0; r < repeats; ++r) {
                    const std::string wrong =
                        bench.try_sort(engine, items, bits, sort::is_stable(engine) ? stable : total);
                    INFO(name_of(engine) << ", " << length << " items, " << name_of(shape) << ", " << bits
                                         << " bits, seed " << seed << ", run " << r << ": " << wrong);
                    REQUIRE(wrong.empty());
                }
            }
            INFO(length << " items, " << name_of(shape));
            REQUIRE(bench.kept(items));
        }
    }
}

}  // namespace

// Needs no GPU.
TEST_CASE("sort engines: all are in the table, and only bitonic is not stable") {
    const auto& names = petacq::config::words<SortEngine>.names;
    CHECK(sort::engines().size() + 1 == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto engine = static_cast<SortEngine>(i);
        CHECK(sort::is_stable(engine) == (engine != SortEngine::bitonic));
    }
}

TEST_CASE("sort: lengths up to a block") {
    if (!cuda_usable()) return;
    check_lengths({0,   1,   2,   3,    7,    8,    9,    31,   32,   33,   255,  256, 257,
                   511, 513, 997, 1023, 1024, 1025, 2047, 2048, 2049, 3001, 4095, 4096},
                  2);
}

// Every kernel once or twice, so that racecheck of compute-sanitizer takes a minute.
TEST_CASE("sort: briefly") {
    if (!cuda_usable()) return;
    check_lengths({33, 6145}, 1, {Shape::random, Shape::few_distinct, Shape::quicksort_killer});
}

TEST_CASE("sort: lengths about a few blocks") {
    if (!cuda_usable()) return;
    check_lengths({4097, 6143, 6145, 8191, 8192, 8193, 12'289, 16'383, 16'385, 20'011, 24'577, 32'767, 32'768,
                   32'769, 65'536, 65'537, 99'991},
                  2);
}

TEST_CASE("sort: long inputs") {
    if (!cuda_usable()) return;
    check_lengths({262'143, 262'145, 500'009, 1'048'575, 1'048'577}, 2);
    check_lengths({2'500'003}, 1);
}

// Sizes of segments and runs that do not repeat.
TEST_CASE("sort: lengths at random") {
    if (!cuda_usable()) return;
    std::vector<std::size_t> lengths;
    std::uint64_t state = 12345;
    for (int i = 0; i < 30; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        lengths.push_back((state >> 33) % (std::size_t{1} << (10 + i % 9)));
    }
    std::sort(lengths.begin(), lengths.end());
    check_lengths(lengths, 1);
}

TEST_CASE("sort: equal items, whatever their order, give one result where equal keys are not kept in order") {
    if (!cuda_usable()) return;
    const std::size_t count = std::min<std::size_t>(20'000, longest());
    Bench bench(count);
    std::vector<Item> items = make_items(Shape::few_distinct, count, 36, 1);
    const std::vector<Item> expected = sorted_copy(items, 36, true);
    for (int turn = 0; turn < 3; ++turn) {
        std::rotate(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(count / 3), items.end());
        bench.load(items);
        const std::string wrong = bench.try_sort(SortEngine::bitonic, items, 36, expected);
        INFO(wrong);
        CHECK(wrong.empty());
    }
}

TEST_CASE("sort: invalid arguments are refused") {
    if (!cuda_usable()) return;
    Bench bench(100);
    const sort::Pairs in{bench.in_key.data(), bench.in_value.data()};
    const sort::Pairs out{bench.out_key.data(), bench.out_value.data()};
    for (const SortEngine engine : engines) {
        const std::size_t bytes = sort::scratch_bytes(engine, 100);
        CHECK_THROWS_AS(sort::scratch_bytes(engine, sort::max_items + 1), std::invalid_argument);
        for (const int bits : {-1, 0, 65}) {
            CHECK_THROWS_AS(
                sort::launch(engine, bench.scratch.data(), bytes, in, out, 100, bits, bench.stream),
                std::invalid_argument);
        }
        if (bytes > 0) {
            CHECK_THROWS_AS(
                sort::launch(engine, bench.scratch.data(), bytes - 1, in, out, 100, 64, bench.stream),
                std::invalid_argument);
        }
    }
    CHECK(sort::chosen(SortEngine::radix, 5) == SortEngine::radix);
    for (const std::uint32_t count : {0U, 1U, 100U, 40'000U, 1U << 20, 1U << 31})
        CHECK(sort::is_stable(sort::chosen(SortEngine::automatic, count)));
}
