#include "tools/petlm/records/union/union_text.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace petacq::petlm {

std::vector<std::pair<std::string, std::string>> union_lines(const nlohmann::json& run) {
    if (!run.is_object() || !run.contains("united")) return {};
    std::vector<std::pair<std::string, std::string>> lines;
    try {
        const nlohmann::json& united = run.at("united");
        const nlohmann::json& hits = united.at("hits");
        std::string of_hits = fmt::format("{} in several runs", hits.at("several").get<std::uint64_t>());
        std::size_t number = 0;
        for (const nlohmann::json& of : united.at("runs")) {
            const auto directory = of.at("directory").get<std::string>();
            of_hits +=
                fmt::format(", {} only in {}", hits.at("only").at(number++).get<std::uint64_t>(), directory);
            std::string state = of.at("state").get<std::string>();
            if (of.at("damage").is_string()) state += ": " + of.at("damage").get<std::string>();
            if (state != "complete") lines.emplace_back("not whole", directory + ": " + state);
        }
        lines.emplace(lines.begin(), "hits", of_hits);
        const nlohmann::json& lost = united.at("lost_by_all");
        const nlohmann::json& most = lost.at("datagrams_at_most");
        std::string of_all;
        if (const auto& lack = lost.at("captures_lack"); !lack.is_null()) {
            of_all = fmt::format("{} datagrams, by the raw captures", lack.get<std::uint64_t>());
        } else if (lost.at("datagrams").is_null()) {
            of_all = fmt::format("unknown in {:.4g} s", lost.at("unknown_s").get<double>());
            if (!most.is_null()) of_all += fmt::format("; at most {} datagrams", most.get<std::uint64_t>());
        } else {
            of_all = fmt::format("{} datagrams", lost.at("datagrams").get<std::int64_t>());
        }
        lines.emplace(lines.begin() + 1, "lost by all", of_all);
        return lines;
    } catch (const nlohmann::json::exception&) {
        return {};  // another program wrote it
    }
}

}  // namespace petacq::petlm
