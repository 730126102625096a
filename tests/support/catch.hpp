// Catch2, version 2 or 3, and looking for a text in another.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace petacq::test {

/// For CHECK_THAT, which shows the text if `part` does not occur in it. The versions of Catch2 use different
/// names.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Matchers::ContainsSubstring(part);
#else
    return Catch::Matchers::Contains(part);
#endif
}

/// The same as a condition.
inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace petacq::test
