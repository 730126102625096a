#include "daemon/status/reason_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <utility>

namespace petacq::daemon {

namespace {

/// Where a code stands in the order, and what explains it if it is there, too.
struct CodeRank {
    std::string_view code;
    std::array<const char*, 5> causes{};  ///< nullptr: no further one
};

/// Causes before their consequences: the detector, the network, the host, and what follows from these.
constexpr std::array order{
    CodeRank{"pipeline_failed"},
    CodeRank{"stage_stalled"},
    CodeRank{"disk_unknown"},
    CodeRank{"disk_space_low"},
    CodeRank{"disk_slow"},
    CodeRank{"run_failed", {"pipeline_failed", "stage_stalled", "disk_unknown", "disk_space_low"}},
    CodeRank{"multicast_not_joined"},
    CodeRank{"source_leading"},
    CodeRank{"source_jumping"},
    CodeRank{"source_stepped_back"},
    CodeRank{"source_clock", {"source_jumping", "source_stepped_back"}},
    CodeRank{"source_lagging", {"source_stepped_back", "source_clock"}},
    CodeRank{"sequence_meaningless"},
    CodeRank{"source_restarted", {"sequence_meaningless"}},
    CodeRank{"udp_checksum_errors"},
    CodeRank{"udp_length_errors"},
    CodeRank{"ip_header_errors"},
    CodeRank{"fragments_lost"},
    CodeRank{"softnet_drops"},
    CodeRank{"udp_memory"},
    CodeRank{"udp_no_port"},
    CodeRank{"reverse_path_filter"},
    CodeRank{"multicast_ignored"},
    CodeRank{"address_unknown"},
    CodeRank{"source_silent", {"multicast_not_joined"}},
    CodeRank{"no_data",
             {"multicast_not_joined", "udp_checksum_errors", "udp_no_port", "reverse_path_filter",
              "multicast_ignored"}},
    CodeRank{"start_delayed", {"disk_unknown", "source_silent", "source_clock"}},
    CodeRank{"temperature_high"},
    CodeRank{"detector_unit_silent", {"source_silent"}},
    CodeRank{"detector_noisy"},
    CodeRank{"boards_out_of_step", {"source_stepped_back"}},
    CodeRank{"boards_without_partners", {"source_stepped_back", "boards_out_of_step"}},
    CodeRank{"detector_time_step", {"source_stepped_back", "boards_out_of_step"}},
    CodeRank{"detector_gain_step", {"temperature_high"}},
    CodeRank{"detector_few_prompts",
             {"detector_unit_silent", "boards_out_of_step", "detector_time_step", "detector_gain_step"}},
    CodeRank{"detector_time_off", {"detector_time_step"}},
    CodeRank{"detector_gain_off", {"detector_gain_step", "temperature_high"}},
    CodeRank{"detector_prompts_off", {"detector_few_prompts", "detector_time_off", "detector_gain_off"}},
    CodeRank{"unknown_source"},
    CodeRank{"too_many_sources", {"unknown_source"}},
    CodeRank{"stream_repeated"},
    CodeRank{"duplicates_suspected"},
    CodeRank{"duplicate_datagrams"},
    CodeRank{"malformed_datagrams"},
    CodeRank{"invalid_frames"},
    CodeRank{"only_tags"},
    CodeRank{"energies_outside"},
    CodeRank{"sources_behind", {"source_leading", "source_jumping"}},
    CodeRank{"time_jumps", {"source_leading", "source_jumping", "sources_behind"}},
    CodeRank{"late_frames", {"source_lagging", "source_stepped_back", "sources_behind"}},
    CodeRank{"sources_given_up", {"source_lagging", "source_silent"}},
    CodeRank{"seconds_slow"},
    CodeRank{"no_free_batch", {"stage_stalled", "disk_slow", "seconds_slow"}},
    CodeRank{"kernel_drops", {"no_free_batch", "stage_stalled", "disk_slow", "seconds_slow"}},
    CodeRank{"datagrams_lost", {"no_free_batch", "kernel_drops", "udp_checksum_errors", "fragments_lost"}},
    CodeRank{"board_lost_data", {"no_free_batch", "kernel_drops"}},
    CodeRank{"latency_high", {"stage_stalled", "disk_slow", "seconds_slow", "source_lagging"}},
    CodeRank{"capture_incomplete", {"disk_space_low", "disk_slow"}},
    CodeRank{"ledger_series_incomplete", {"disk_space_low"}},
    CodeRank{"disk_time_low"},
    CodeRank{"peer_missing"},
    CodeRank{"run_interrupted"},
};

/// follows_from names a reason above.
constexpr bool causes_stand_above() {
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (const char* const cause : order[i].causes) {
            const auto* const end = order.begin() + i;
            if (cause != nullptr &&
                std::none_of(order.begin(), end, [&](const CodeRank& above) { return above.code == cause; }))
                return false;
        }
    }
    return true;
}
static_assert(causes_stand_above());

/// A code that is not in the order comes last. tests/docs/reasons_test.py finds it.
std::size_t place_of(std::string_view code) {
    const auto* const found =
        std::find_if(order.begin(), order.end(), [&](const CodeRank& place) { return place.code == code; });
    return static_cast<std::size_t>(found - order.begin());
}

std::optional<std::uint32_t> number_of(const std::string& name) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc{} || end != name.data() + name.size()) return {};
    return number;
}

/// "0, 2, 6-11, 13, ...": three or more numbers in a row are a range.
std::string list_of(std::vector<std::string> names) {
    constexpr int max_parts = 10;
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        const auto x = number_of(a);
        const auto y = number_of(b);
        return x && y ? *x < *y : x.has_value() != y.has_value() ? x.has_value() : a < b;
    });
    std::string text;
    std::size_t first = 0;
    for (int part = 0; first < names.size(); ++part) {
        const char* const comma = part == 0 ? "" : ", ";
        if (part == max_parts) return text + ", ...";
        std::size_t last = first;
        const auto number = number_of(names[first]);
        while (number && last + 1 < names.size() &&
               number_of(names[last + 1]) == *number + static_cast<std::uint32_t>(last + 1 - first))
            ++last;
        if (last < first + 2) last = first;
        text += comma + names[first] + (last > first ? "-" + names[last] : "");
        first = last + 1;
    }
    return text;
}

std::string message_of(const std::vector<const HealthReason*>& group) {
    // Those that last although nobody sees them any more are not up to date.
    const auto latest = std::max_element(group.begin(), group.end(),
                                         [](const auto* a, const auto* b) { return a->seen < b->seen; });
    const Problem& first = (*latest)->problem;
    if (group.size() == 1 || first.several.empty()) return first.message();
    std::vector<std::string> names;
    const Problem* worst = &first;
    for (const HealthReason* reason : group) {
        names.push_back(reason->problem.name);
        if (reason->problem.size > worst->size) worst = &reason->problem;
    }
    std::string text = fmt::format("{} {}: {}", group.size(), first.several, list_of(std::move(names)));
    if (worst->size > 0) text += "; the worst: " + worst->what;
    return first.advice.empty() ? text : text + ": " + first.advice;
}

}  // namespace

std::vector<RankedReason> ranked(const std::vector<const HealthReason*>& reasons) {
    using Key = std::pair<bool, std::size_t>;  // false, for a failure, comes first
    std::vector<std::pair<Key, std::vector<const HealthReason*>>> groups;
    for (const HealthReason* reason : reasons) {
        const Key key{!reason->problem.failed, place_of(reason->problem.code)};
        const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
            return group.first == key &&
                   group.second.front()->problem.code == std::string_view(reason->problem.code);
        });
        if (found == groups.end()) {
            groups.push_back({key, {reason}});
        } else {
            found->second.push_back(reason);
        }
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<RankedReason> result;
    for (const auto& [key, group] : groups) {
        const HealthReason& first = *group.front();
        RankedReason one{first.problem.code,
                         group.size(),
                         message_of(group),
                         first.problem.failed,
                         first.since,
                         first.seen,
                         ""};
        for (const HealthReason* reason : group) {
            one.since = std::min(one.since, reason->since);
            one.seen = std::max(one.seen, reason->seen);
        }
        if (key.second < order.size()) {
            for (const char* const cause : order.at(key.second).causes) {
                const bool there = cause != nullptr &&
                                   std::any_of(result.begin(), result.end(), [&](const RankedReason& above) {
                                       return std::string_view(above.code) == cause;
                                   });
                if (there && one.follows_from.empty()) one.follows_from = cause;
            }
        }
        result.push_back(std::move(one));
    }
    return result;
}

std::vector<RankedReason> ranked(const std::vector<HealthReason>& reasons) {
    std::vector<const HealthReason*> all(reasons.size());
    std::transform(reasons.begin(), reasons.end(), all.begin(),
                   [](const HealthReason& reason) { return &reason; });
    return ranked(all);
}

}  // namespace petacq::daemon
