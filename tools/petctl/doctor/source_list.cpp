#include "tools/petctl/doctor/source_list.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tools/petctl/sources.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

void add_modules(json& source, const Sender& sender) {
    std::set<unsigned> all = sender.modules;
    all.merge(bdms_of(source));
    std::string text;
    for (const unsigned bdm : all)
        text += (text.empty() ? "" : ",") + std::to_string(bdm);
    source["bdms"] = text;
}

}  // namespace

json heard_sources(json status, const Impression& seen) {
    for (const char* who : {"sources", "unknown_sources"}) {
        if (!status.contains(who)) continue;
        for (json& source : status[who]) {
            for (const auto& [name, sender] : seen.senders) {
                const bool is_it =
                    name.second ? at(source, {"id"}) == *name.second : at(source, {"address"}) == name.first;
                if (is_it) add_modules(source, sender);
            }
        }
    }
    return sources_heard(status);
}

json sampled_sources(const Impression& seen) {
    // As the status has them.
    json heard = json::array();
    for (const auto& [name, sender] : seen.senders) {
        json source = {{"id", name.second ? json(*name.second) : json()}, {"address", name.first}};
        add_modules(source, sender);
        heard.push_back(source);
    }
    return sources_heard({{"sources", heard}});
}

}  // namespace petacq::petctl
