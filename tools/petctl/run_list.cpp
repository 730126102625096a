#include "tools/petctl/run_list.hpp"

#include <algorithm>
#include <limits>

#include "tools/petctl/values.hpp"

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
    if (!runs_.empty()) parameters["before"] = at(runs_.back(), {"run"});
    return parameters;
}

void RunList::add(const json& page) {
    data_dir_ = at(page, {"data_dir"});
    const json& found = at(page, {"runs"});
    const json& earlier = at(page, {"earlier"});
    more_ = found.is_array() && !found.empty() && earlier.is_number() && earlier != 0;
    if (!found.is_array()) return;
    wanted_ -= std::min(wanted_, found.size());
    for (auto run = found.rbegin(); run != found.rend(); ++run)
        runs_.push_back(*run);
}

json RunList::document() const {
    json runs = runs_;
    std::reverse(runs.begin(), runs.end());
    return {{"data_dir", data_dir_}, {"runs", std::move(runs)}};
}

}  // namespace petacq::petctl
