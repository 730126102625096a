#include "tools/petctl/doctor/source_list.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/values.hpp"

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

CompleteList complete_sources(const json& status, const Impression& seen) {
    struct Board {
        json entry;  // as the status has them
        std::string name;
        std::set<unsigned> listed;
        std::set<unsigned> bdms;
        bool heard = false;
    };
    const auto is_it = [](const json& a, const json& b) {
        return at(a, {"id"}).is_null() ? at(a, {"address"}) == at(b, {"address"})
                                       : at(a, {"id"}) == at(b, {"id"});
    };
    const auto name_of = [](const json& entry) {
        const json& id = at(entry, {"id"});
        return id.is_null() ? text_of(at(entry, {"address"})) : "source " + id.dump();
    };
    const auto sent_by = [&](const json& entry) {
        std::set<unsigned> bdms;
        for (const auto& [name, sender] : seen.senders) {
            const json& id = at(entry, {"id"});
            if (name.second ? id == *name.second : at(entry, {"address"}) == name.first)
                bdms.insert(sender.modules.begin(), sender.modules.end());
        }
        return bdms;
    };
    std::vector<Board> boards;
    const char* all_described = status.at("reception").contains("described") ? "described" : "listed";
    for (const json& entry : at(status, {"reception", all_described}))
        boards.push_back({entry, name_of(entry), bdms_of(entry), {}, false});
    CompleteList complete;
    for (const char* who : {"sources", "unknown_sources"}) {
        const json& heard = at(status, {who});
        if (!heard.is_array()) continue;
        for (const json& source : heard) {
            auto board = std::find_if(boards.begin(), boards.end(),
                                      [&](const Board& b) { return is_it(b.entry, source); });
            std::set<unsigned> sent = sent_by(source);
            sent.merge(bdms_of(source));
            if (board == boards.end()) {
                if (sent.empty()) continue;
                boards.push_back({source, name_of(source), {}, {}, false});
                board = boards.end() - 1;
                complete.changes.push_back(board->name + " is new");
            }
            board->bdms.merge(sent);
            board->heard = !board->bdms.empty();
        }
    }
    for (Board& board : boards) {
        // A few samples need not show every module of a board.
        const bool within =
            std::includes(board.listed.begin(), board.listed.end(), board.bdms.begin(), board.bdms.end());
        if (within) board.bdms = board.listed;
    }
    // In place of a silent one.
    std::erase_if(boards, [&](const Board& silent) {
        if (silent.heard || silent.bdms.empty()) return false;
        const auto other = std::find_if(boards.begin(), boards.end(), [&](const Board& b) {
            return b.heard &&
                   std::includes(b.bdms.begin(), b.bdms.end(), silent.bdms.begin(), silent.bdms.end());
        });
        if (other == boards.end()) return false;
        complete.changes.push_back(fmt::format(
            "{} sends the BDMs of {}, which is silent and not in this list", other->name, silent.name));
        return true;
    });
    std::set<unsigned> taken;
    json entries = json::array();
    for (const Board& board : boards) {
        for (const unsigned bdm : board.bdms)
            complete.consistent = taken.insert(bdm).second && complete.consistent;
        if (!board.listed.empty() && board.bdms != board.listed)
            complete.changes.push_back(fmt::format("BDMs of {}", board.name));
        if (!board.listed.empty() && !board.heard)
            complete.changes.push_back(fmt::format("{} is silent, and kept as it is", board.name));
        std::string text;
        for (const unsigned bdm : board.bdms)
            text += (text.empty() ? "" : ",") + std::to_string(bdm);
        entries.push_back(
            {{"id", at(board.entry, {"id"})}, {"address", at(board.entry, {"address"})}, {"bdms", text}});
    }
    complete.sources = list_text(sources_heard({{"sources", entries}}));
    return complete;
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
