// Keys of the configuration that choose one of several words, as enums. The enumerators stand in the order of
// the words; every part of the program takes them from here.
#pragma once

#include <cstdint>

#include "config/base/words.hpp"

namespace petacq::config {

/// The framing of a datagram: a header with source id and sequence number before its frames, or none.
enum class Framing : std::uint8_t { sequenced, bare };

enum class Backend : std::uint8_t { automatic, cuda, cpu };

/// Which singles open windows, and which of them pair; gpu/rules/coincidence_rules.hpp says what each does.
enum class WindowMode : std::uint8_t { single, every, single_opener };

/// The treatment of groups of more than two singles; named as in GATE 10.
enum class MultiplesPolicy : std::uint8_t {
    remove_multiples,
    take_all_goods,
    take_winner_of_goods,
    take_if_only_one_good,
    take_winner_if_is_good,
    take_winner_if_all_are_goods
};

/// Which gammas near a pair become triples; gpu/rules/gamma_rules.hpp says what each does.
enum class GammaPolicy : std::uint8_t { all, only_one, nearest };

/// How delayed coincidences are found; gpu/rules/coincidence_rules.hpp says what each does.
enum class DelayedRule : std::uint8_t { shifted_group, delayed_window };

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

/// The compression of list-mode blocks.
enum class Compression : std::uint8_t { none, zstd };

/// Whether threads and memory are put near the devices whose data they touch.
enum class PlacementRule : std::uint8_t { automatic, off };

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error };

template <>
inline constexpr Words<2> words<Framing>{"framing", {"sequenced", "bare"}};
template <>
inline constexpr Words<3> words<Backend>{"back-end", {"auto", "cuda", "cpu"}};
template <>
inline constexpr Words<3> words<WindowMode>{"window mode", {"single", "every", "single_opener"}};
template <>
inline constexpr Words<6> words<MultiplesPolicy>{
    "multiples policy",
    {"RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood",
     "TakeWinnerIfAllAreGoods"}};
template <>
inline constexpr Words<3> words<GammaPolicy>{"gamma policy", {"all", "only_one", "nearest"}};
template <>
inline constexpr Words<2> words<DelayedRule>{"rule for delayeds", {"shifted_group", "delayed_window"}};
template <>
inline constexpr Words<7> words<SortEngine>{
    "sort engine", {"auto", "merge", "radix", "bitonic", "quicksort", "odd-even", "cub"}};
template <>
inline constexpr Words<2> words<Compression>{"compression", {"none", "zstd"}};
template <>
inline constexpr Words<2> words<PlacementRule>{"placement", {"auto", "off"}};
template <>
inline constexpr Words<5> words<LogLevel>{"log level", {"trace", "debug", "info", "warning", "error"}};

}  // namespace petacq::config
