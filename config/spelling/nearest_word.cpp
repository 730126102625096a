#include "config/spelling/nearest_word.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>

namespace petacq::config {

namespace {

/// Known words are short: a long word is similar to none of them, and would take long to compare.
constexpr std::size_t longest_word = 64;

/// Letters to insert, delete, replace, or exchange with the next one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        before.swap(last);
        last.swap(row);
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            row[j + 1] = std::min({last[j] + (a[i] == b[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
    std::string nearest;
    if (word.size() > longest_word) return nearest;
    std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& name : known) {
        const std::size_t distance = edit_distance(word, name);
        if (distance >= best) continue;
        best = distance;
        nearest = name;
    }
    return nearest;
}

}  // namespace petacq::config
