// Enums whose values are words of the configuration: how an enum and its words become each other.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace petacq::config {

/// The words of an enum, and what messages call it.
template <std::size_t N>
struct Words {
    const char* subject;
    std::array<const char*, N> names;
};
template <class E>
inline constexpr std::nullptr_t words = nullptr;

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
