#include "tests/gpu/sort/inputs.hpp"

#include <algorithm>
#include <random>
#include <tuple>

#include "gpu/sort/sampling.hpp"

namespace petacq::test {

namespace {

std::uint64_t low_bits(std::uint64_t key, int bits) {
    return bits == 64 ? key : key & ((std::uint64_t{1} << bits) - 1);
}

// In each round all samples of a quicksort are equal and smaller than the rest, so that it cuts only the
// samples off a segment.
std::vector<std::uint64_t> killer_keys(std::size_t count, int bits, std::mt19937_64& random) {
    std::vector<std::uint64_t> keys(count);
    for (std::uint64_t& key : keys)
        key = low_bits(random(), bits) | (bits > 3 ? 8 : 0);
    std::vector<std::size_t> left(count);
    for (std::size_t i = 0; i < count; ++i)
        left[i] = i;
    const int rounds = gpu::sort::quicksort_rounds(static_cast<std::uint32_t>(count));
    for (int round = 0; round < rounds && left.size() > gpu::sort::quicksort_block; ++round) {
        const auto size = static_cast<std::uint32_t>(left.size());
        const std::uint32_t samples = gpu::sort::parts_of_segment(size) * gpu::sort::samples_per_pivot;
        std::vector<bool> taken(size, false);
        for (std::uint32_t i = 0; i < samples; ++i) {
            const std::uint32_t at = gpu::sort::sample_place(i, samples, size);
            taken[at] = true;
            keys[left[at]] = static_cast<std::uint64_t>(round);
        }
        std::vector<std::size_t> rest;
        for (std::uint32_t i = 0; i < size; ++i) {
            if (!taken[i]) rest.push_back(left[i]);
        }
        left = std::move(rest);
    }
    return keys;
}

std::vector<std::uint64_t> stream_keys(std::size_t count, std::mt19937_64& random) {
    std::vector<std::uint64_t> time(64, 0);
    std::vector<std::uint64_t> keys;
    while (keys.size() < count) {
        std::uint64_t& t = time[random() % time.size()];
        for (int k = 0; k < 90 && keys.size() < count; ++k)
            keys.push_back(t += random() % 2000);
    }
    return keys;
}

}  // namespace

const std::vector<Shape>& all_shapes() {
    static const std::vector<Shape> all{Shape::random,          Shape::nearly_sorted, Shape::sorted,
                                        Shape::reversed,        Shape::all_equal,     Shape::few_distinct,
                                        Shape::organ_pipe,      Shape::low_bits_only, Shape::extremes,
                                        Shape::quicksort_killer};
    return all;
}

std::string name_of(Shape shape) {
    static const std::vector<std::string> names{"random",    "nearly sorted",   "sorted",     "reversed",
                                                "all equal", "few distinct",    "organ pipe", "low bits only",
                                                "extremes",  "quicksort killer"};
    return names.at(static_cast<std::size_t>(shape));
}

std::vector<Item> make_items(Shape shape, std::size_t count, int bits, std::uint64_t seed) {
    std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(shape));
    std::vector<Item> items(count);
    std::vector<std::uint64_t> keys(count);
    const std::uint64_t one = random();
    switch (shape) {
        case Shape::nearly_sorted:
            keys = stream_keys(count, random);
            break;
        case Shape::quicksort_killer:
            keys = killer_keys(count, bits, random);
            break;
        default:
            for (std::size_t i = 0; i < count; ++i) {
                const std::uint64_t r = random();
                switch (shape) {
                    case Shape::sorted:
                        keys[i] = i * 3 / 2;
                        break;
                    case Shape::reversed:
                        keys[i] = (count - i) * 5 / 4;
                        break;
                    case Shape::all_equal:
                        keys[i] = one;
                        break;
                    case Shape::few_distinct:
                        keys[i] = one + r % 7 * 0x0101010101010101U;
                        break;
                    case Shape::organ_pipe:
                        keys[i] = std::min(i, count - i);
                        break;
                    case Shape::low_bits_only:
                        keys[i] = bits == 64 ? r % 5 : r << bits | r >> (64 - std::min(bits, 3));
                        break;
                    case Shape::extremes:
                        keys[i] = (r & 4) != 0 ? r & 1 : ~(r & 1);
                        break;
                    default:
                        keys[i] = r;
                }
            }
    }
    for (std::size_t i = 0; i < count; ++i)
        items[i] = {keys[i], (i + seed) * 0x9E3779B97F4A7C15U};
    return items;
}

std::vector<Item> sorted_copy(std::vector<Item> items, int bits, bool total) {
    std::stable_sort(items.begin(), items.end(), [=](const Item& a, const Item& b) {
        const std::uint64_t a_low = low_bits(a.key, bits);
        const std::uint64_t b_low = low_bits(b.key, bits);
        if (!total || a_low != b_low) return a_low < b_low;
        return std::tie(a.key, a.value) < std::tie(b.key, b.value);
    });
    return items;
}

}  // namespace petacq::test
