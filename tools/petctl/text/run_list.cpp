#include "tools/petctl/text/run_list.hpp"

#include <algorithm>
#include <limits>

#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

/// Small enough that the answer fits into the smallest send buffer that can be configured.
constexpr std::size_t runs_in_answer = 100;

}  // namespace

RunList::RunList(std::optional<std::size_t> last)
    : wanted_(last.value_or(std::numeric_limits<std::size_t>::max())) {}

std::optional<json> RunList::next() const {
    if (wanted_ == 0 || !more_) return std::nullopt;
    json parameters = {{"limit", std::min(wanted_, runs_in_answer)}};
    if (!pages_.empty()) parameters["before"] = at(pages_.back()["runs"].front(), {"run"});
    return parameters;
}

void RunList::add(const json& page) {
    pages_.push_back(page);
    const json& runs = at(page, {"runs"});
    const json& earlier = at(page, {"earlier"});
    more_ = runs.is_array() && !runs.empty() && earlier.is_number() && earlier != 0;
    if (runs.is_array()) wanted_ -= std::min(wanted_, runs.size());
}

json RunList::document() const {
    json runs = json::array();
    for (auto page = pages_.rbegin(); page != pages_.rend(); ++page) {
        const json& of_page = at(*page, {"runs"});
        if (of_page.is_array()) runs.insert(runs.end(), of_page.begin(), of_page.end());
    }
    return {{"data_dir", pages_.empty() ? json() : at(pages_.back(), {"data_dir"})},
            {"runs", std::move(runs)}};
}

}  // namespace petacq::petctl
