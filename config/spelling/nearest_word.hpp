// Finds the word that a user who misspelt a key, option or command probably meant.
#pragma once

#include <string>
#include <vector>

namespace petacq::config {

/// The known word with the smallest edit distance (inserted, removed or replaced characters); "" if none is
/// within a third of the length of `word`, or 2.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace petacq::config
