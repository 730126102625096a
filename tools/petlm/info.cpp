#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/base/error.hpp"
#include "config/configuration.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/system/progress_line.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/union/union_text.hpp"

namespace petacq::petlm {
namespace {

struct Contents {
    daemon::Condition condition;
    bool checked = false;  ///< every block was read
    std::uint64_t first_time = 0;
    std::uint64_t last_time = 0;
};

/// Reads every block only if the file has no index.
Contents contents_of(daemon::ListModeReader& reader) {
    Contents contents;
    contents.condition = reader.condition();
    if (const auto& trailer = reader.trailer()) {
        contents.condition.blocks = trailer->blocks;
        contents.condition.records = trailer->records;
        contents.condition.payload_crc = trailer->payload_crc;
        if (!reader.index().empty()) {
            contents.first_time = reader.index().front().first_time;
            contents.last_time = reader.index().back().last_time;
        }
        return contents;
    }
    daemon::ProgressLine progress("reading " + reader.path().filename().string(), reader.file_bytes());
    while (reader.next()) {
        if (reader.condition().blocks == 1) contents.first_time = reader.block().first_time;
        contents.last_time = reader.block().last_time;
        progress.show(reader.bytes_done());
    }
    contents.condition = reader.condition();
    contents.checked = true;
    return contents;
}

nlohmann::json to_json(const daemon::ListModeReader& reader, const Contents& contents,
                       const daemon::Coverage& coverage) {
    const auto& condition = contents.condition;
    nlohmann::json json = {{"file", reader.path().string()},
                           {"kind", daemon::name_of(reader.kind())},
                           {"state", daemon::name_of(condition.state)},
                           {"checked", contents.checked},
                           {"summary", condition.summary()},
                           {"files", condition.files},
                           {"file_bytes", reader.file_bytes()},
                           {"block_bytes", reader.header().block_bytes},
                           {"record_bytes", reader.header().record_bytes},
                           {"blocks", condition.blocks},
                           {"records", condition.records},
                           {"missing_records", condition.missing_records},
                           {"tail_bytes", condition.tail_bytes},
                           {"payload_crc32c", fmt::format("{:08x}", condition.payload_crc)},
                           {"coverage", daemon::to_json(coverage)},
                           {"description", reader.description()}};
    if (condition.records != 0) {
        json["first_time"] = contents.first_time;
        json["last_time"] = contents.last_time;
    }
    return json;
}

/// The names of the fields of a second, each with its shape.
std::string names_in(const nlohmann::json& fields) {
    std::string text;
    try {
        for (const auto& field : fields) {
            text += (text.empty() ? "" : ", ") + field.at("name").get<std::string>();
            if (!field.at("shape").empty()) text += field["shape"].dump();
        }
    } catch (const nlohmann::json::exception&) {
        return json_line(fields);
    }
    return text;
}

/// What the file covers, for people.
void print(const daemon::Coverage& coverage) {
    const auto in_s = [&](std::uint64_t ticks) {
        return static_cast<double>(ticks) * coverage.tick_ps * 1e-12;
    };
    if (coverage.intervals) {
        const auto& ranges = coverage.intervals->ranges();
        const auto [start, end] = coverage.span();
        std::cout << fmt::format("covers       {:.9g} s{}\n", coverage.seconds(),
                                 ranges.size() == 1 ? "" : fmt::format(", in {} intervals", ranges.size()));
        if (!ranges.empty()) {
            std::cout << fmt::format("from         {} to {} ticks, {:.9g} to {:.9g} s\n", start, end,
                                     in_s(start), in_s(end));
            if (const auto utc = coverage.utc_of(start))
                std::cout << "             first time " << daemon::utc_text(*utc) << '\n';
        }
    }
    if (coverage.anchor) {
        std::cout << fmt::format("run start    {} ticks, {}\n", coverage.anchor->ticks,
                                 daemon::utc_text(coverage.anchor->utc));
    }
    if (const auto& c = coverage.rules.coincidence)
        std::cout << "coincidence  " << json_line(config::to_json(*c)) << '\n';
    if (const auto& e = coverage.rules.energy)
        std::cout << "energy       " << json_line(config::to_json(*e)) << '\n';
    if (const auto& g = coverage.rules.gammas)
        std::cout << "gammas       " << json_line(config::to_json(*g)) << '\n';
    if (coverage.loss.live)
        std::cout << fmt::format("arrived      {:.4g} % of the data\n", 100 * *coverage.loss.live);
    if (!coverage.loss.seconds_complete) std::cout << "seconds      do not cover all of it\n";
    for (const daemon::OriginRun& run : coverage.origin.runs)
        std::cout << fmt::format("of run       {} {}\n", run.run_id, run.directory.string());
    for (const std::string& what : coverage.unknown)
        std::cout << "not known    " << what << '\n';
}

void print(const daemon::ListModeReader& reader, const Contents& contents, const daemon::Coverage& coverage) {
    const auto& condition = contents.condition;
    std::cout << "file         " << reader.path().string() << ", " << reader.file_bytes() << " bytes\n"
              << "kind         " << daemon::name_of(reader.kind()) << ", " << reader.header().record_bytes
              << " bytes each\n"
              << "state        " << condition.summary()
              << (contents.checked ? "" : " (by its index; petlm verify reads the data)") << '\n'
              << "records      " << condition.records << " in " << condition.blocks << " blocks of at most "
              << reader.header().block_bytes << " bytes\n";
    if (condition.records != 0) {
        std::cout << "time         " << contents.first_time << " to " << contents.last_time << " ticks";
        const auto tick_ps = reader.description().find("tick_ps");
        if (tick_ps != reader.description().end() && tick_ps->is_number() &&
            contents.last_time >= contents.first_time) {
            const double ticks = static_cast<double>(contents.last_time - contents.first_time);
            std::cout << fmt::format(", {:.6g} s", ticks * tick_ps->get<double>() * 1e-12);
        }
        std::cout << '\n';
    }
    std::cout << fmt::format("payload      crc32c {:08x}\n", condition.payload_crc);
    print(coverage);
    for (const auto& [key, value] : reader.description().items()) {
        // null: it does not exist here, such as crystals_in_ring of a scanner that is no ring.
        if (key == "coverage" || value.is_null()) continue;
        if (key == "imported" && value.is_object() && value.contains("declared")) {
            nlohmann::json of_file = value;
            of_file.erase("declared");
            std::cout << "imported     " << json_line(of_file) << '\n'
                      << "declared     " << json_line(value["declared"])
                      << ", said at the import: not in the file\n";
            continue;
        }
        const bool fields = key == "fields" && reader.kind() == daemon::RecordKind::seconds;
        std::cout << fmt::format("{:<12} {}\n", key, fields ? names_in(value) : json_line(value));
    }
}

/// How many triples of a run are true, from its ledger; empty without gammas. Those of chance are as many as
/// the delayed ones, where gammas do not hide each other and nearly all pairs have data a delay later.
std::string third_photons_line(const nlohmann::json& run) {
    try {
        const auto& section = run.at("configuration").at("gammas");
        const auto& counted = run.at("ledger").at("gammas");
        const auto all = counted.at("triples").get<std::int64_t>();
        if (section.is_null()) return "";
        const config::Gammas gammas = config::gammas_from_json(section);
        if (!gammas.delay_ticks)
            return fmt::format("triples      {}; none delayed, so that those of chance are not known\n", all);
        const auto delayed = counted.at("delayed").get<std::int64_t>();
        const std::string found = fmt::format("triples      {} coincident, {} delayed", all, delayed);
        const daemon::Coverage coverage = daemon::coverage_of_run(run);
        const auto recorded = static_cast<double>(coverage.ticks());
        const auto delay = static_cast<double>(*gammas.delay_ticks);
        const double error = std::sqrt(static_cast<double>(all + delayed));
        // The pairs of the last `delay` of the run have none.
        if (!(delay < recorded) || static_cast<double>(delayed) * delay / (recorded - delay) > error) {
            return found + fmt::format(
                               "; how many are true is not known: the delay of {:.4g} s is too long "
                               "for a run of {:.4g} s\n",
                               delay * coverage.tick_ps * 1e-12, coverage.seconds());
        }
        if (gammas.policy != config::GammaPolicy::all) {
            return found + fmt::format(
                               "; their difference is not the number of true ones, as gammas hide "
                               "others with the policy {}\n",
                               config::name_of(gammas.policy));
        }
        return found + fmt::format(": {} +- {:.0f} true\n", all - delayed, error);
    } catch (const nlohmann::json::exception&) {
        return "";
    } catch (const config::Error&) {
        return "";  // another program wrote it
    } catch (const std::invalid_argument&) {
        return "";  // as above
    }
}

std::string mark_line(const daemon::Mark& mark) {
    return fmt::format("{}{}: {}", daemon::utc_text(mark.time),
                       mark.ticks ? fmt::format(", {} ticks", *mark.ticks) : "", json_line(mark.text));
}

/// Where the expected randoms of a run are uncertain; empty if nowhere, or if run.json does not tell.
std::string uncertain_randoms_line(const nlohmann::json& run) {
    try {
        const auto& randoms = run.at("expected_randoms");
        const double uncertain_s = randoms.at("uncertain_s").get<double>();
        if (!(uncertain_s > 0)) return "";
        return fmt::format(
            "randoms      {:.6g} expected, uncertain in {:.4g} of {:.4g} s: too little tells where the "
            "partners "
            "lie that make no good pair{}\n",
            randoms.at("pairs").get<double>(), uncertain_s, randoms.at("data_s").get<double>(),
            randoms.at("from_delayeds").is_null()
                ? ""
                : fmt::format("; {:.6g} by delayeds", randoms["from_delayeds"].get<double>()));
    } catch (const nlohmann::json::exception&) {
        return "";
    }
}

}  // namespace

int info(const InfoOptions& options) {
    const auto& [target, as_json] = options;
    const auto files = listmode_files(target);
    const bool is_run = std::filesystem::is_directory(target);
    nlohmann::json document = {{"files", nlohmann::json::array()}};
    int status = ok;
    if (is_run) {
        std::string why;
        document["run"] = run_json(target, why);
        const std::vector<daemon::Mark> marks = daemon::read_marks(target);
        document["marks"] = daemon::to_json(marks);
        if (!as_json) {
            const auto& run = document["run"];
            std::cout << "run          " << target.string() << ": "
                      << (run.is_null() ? why : "state " + state_of_run(target, run)) << "\n"
                      << third_photons_line(run) << uncertain_randoms_line(run);
            for (const auto& [what, value] : union_lines(run))
                std::cout << fmt::format("{:<12} {}\n", what, value);
            for (const daemon::Mark& mark : marks)
                std::cout << "mark         " << mark_line(mark) << '\n';
            std::cout << '\n';
        }
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
        daemon::ListModeReader reader(files[i]);
        const Contents contents = contents_of(reader);
        if (contents.condition.state != daemon::FileState::complete) status = has_problems;
        const daemon::Coverage coverage = coverage_of_files(files[i], reader.kind(), {reader.description()},
                                                            run_of(files[i], reader.description()));
        if (as_json) {
            document["files"].push_back(to_json(reader, contents, coverage));
        } else {
            if (i != 0) std::cout << '\n';
            print(reader, contents, coverage);
        }
    }
    if (as_json) {
        const auto& shown = is_run ? document : document["files"][0];
        std::cout << shown.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    }
    return status;
}

}  // namespace petacq::petlm
