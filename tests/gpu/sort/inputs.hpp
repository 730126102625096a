// Inputs for the sort engines: hard, easy, and at the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace petacq::test {

struct Item {
    std::uint64_t key;
    std::uint64_t value;
    bool operator==(const Item&) const = default;
};

enum class Shape : std::uint8_t {
    random,         ///< 64 bits
    nearly_sorted,  ///< 64 sources, each in order, in packets
    sorted,
    reversed,
    all_equal,
    few_distinct,
    organ_pipe,       ///< up, then down
    low_bits_only,    ///< few low bits below random high ones
    extremes,         ///< 0, 2^64 - 1 and their neighbours
    quicksort_killer  ///< all samples that a quicksort takes are equal, and small
};
const std::vector<Shape>& all_shapes();
std::string name_of(Shape shape);

/// Values are distinct, and in no order.
std::vector<Item> make_items(Shape shape, std::size_t count, int bits, std::uint64_t seed);

/// Stable order by the low bits; with `total`, then by the rest of the key and the value.
std::vector<Item> sorted_copy(std::vector<Item> items, int bits, bool total);

}  // namespace petacq::test
