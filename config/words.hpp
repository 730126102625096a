// The words of the configuration that choose one of several alternatives, as enums. Every other part of the
// program takes the enums from here. The enumerators stand in the order of their words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace petacq::config {

/// The framing of a datagram: a header with source id and sequence number before its frames, or none.
enum class Framing : std::uint8_t { sequenced, bare };

enum class Backend : std::uint8_t { automatic, cuda, cpu };

enum class WindowMode : std::uint8_t { single, every };

/// The treatment of groups of more than two singles; named as in GATE 10.
enum class MultiplesPolicy : std::uint8_t {
    remove_multiples,
    take_all_goods,
    take_winner_of_goods,
    take_if_only_one_good,
    take_winner_if_is_good,
    take_winner_if_all_are_goods
};

/// The algorithm that sorts singles on the GPU.
enum class SortEngine : std::uint8_t {
    automatic,  ///< one of the stable ones, chosen by the number of singles
    merge,      ///< sorts blocks, then merges two runs at a time
    radix,      ///< least significant digit first, 8 bits a pass
    bitonic,    ///< a sorting network; not stable
    quicksort,  ///< partitions by up to 255 pivots at a time, then sorts blocks
    odd_even,   ///< odd-even transposition in blocks, then merges
    cub         ///< the radix sort of NVIDIA's library
};

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error };

/// The words of an enum, and what messages call it.
template <std::size_t N>
struct Words {
    const char* subject;
    std::array<const char*, N> names;
};
template <class E>
inline constexpr std::nullptr_t words = nullptr;
template <>
inline constexpr Words<2> words<Framing>{"framing", {"sequenced", "bare"}};
template <>
inline constexpr Words<3> words<Backend>{"back-end", {"auto", "cuda", "cpu"}};
template <>
inline constexpr Words<2> words<WindowMode>{"window mode", {"single", "every"}};
template <>
inline constexpr Words<6> words<MultiplesPolicy>{
    "multiples policy",
    {"RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood",
     "TakeWinnerIfAllAreGoods"}};
template <>
inline constexpr Words<7> words<SortEngine>{
    "sort engine", {"auto", "merge", "radix", "bitonic", "quicksort", "odd-even", "cub"}};
template <>
inline constexpr Words<5> words<LogLevel>{"log level", {"trace", "debug", "info", "warning", "error"}};

template <class E>
concept WordEnum = requires {
    words<E>.names;
};

template <WordEnum E>
constexpr const char* name_of(E value) {
    return words<E>.names.at(static_cast<std::size_t>(value));
}

/// Throws std::invalid_argument with a list of the accepted words.
template <WordEnum E>
E from_name(std::string_view name) {
    std::string accepted;
    for (std::size_t i = 0; i < words<E>.names.size(); ++i) {
        if (name == words<E>.names[i]) return static_cast<E>(i);
        accepted.append(i == 0 ? "" : ", ").append(words<E>.names[i]);
    }
    throw std::invalid_argument(std::string(words<E>.subject) + " '" + std::string(name) +
                                "': expected one of " + accepted);
}

}  // namespace petacq::config
