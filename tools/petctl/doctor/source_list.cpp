#include "tools/petctl/doctor/source_list.hpp"

#include <nlohmann/json.hpp>

#include "tools/petctl/sources.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

void add_modules(json& source, const Sender& sender) {
    std::set<unsigned> all = sender.modules;
    if (const json& bdms = at(source, {"bdms"}); bdms.is_string()) {
        for (const unsigned bdm : numbers_in(bdms.get_ref<const std::string&>()))
            all.insert(bdm);
    }
    std::string text;
    for (const unsigned bdm : all)
        text += (text.empty() ? "" : ",") + std::to_string(bdm);
    source["bdms"] = text;
}

}  // namespace

std::string heard_sources(json status, const Impression& seen) {
    for (const char* who : {"sources", "unknown_sources"}) {
        if (!status.contains(who)) continue;
        for (json& source : status[who]) {
            for (const auto& [name, sender] : seen.senders) {
                const bool same =
                    name.second ? at(source, {"id"}) == *name.second : at(source, {"address"}) == name.first;
                if (same) add_modules(source, sender);
            }
        }
    }
    return sources_list(status);
}

std::string sampled_sources(const Impression& seen) {
    // As the status has them.
    json heard = json::array();
    for (const auto& [name, sender] : seen.senders) {
        json source = {{"id", name.second ? json(*name.second) : json()}, {"address", name.first}};
        add_modules(source, sender);
        heard.push_back(source);
    }
    return sources_list({{"sources", heard}});
}

}  // namespace petacq::petctl
