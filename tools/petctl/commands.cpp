#include "tools/petctl/commands.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/json_file.hpp"
#include "tools/petctl/text/history_text.hpp"
#include "tools/petctl/text/run_list.hpp"
#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/start_times.hpp"
#include "tools/petctl/text/status_summary.hpp"
#include "tools/petctl/text/status_text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::ControlClient;
using nlohmann::json;

namespace {

void show(const json& document, bool as_json, Lines (*as_lines)(const json&)) {
    if (as_json) return print_json(document);
    print(joined(as_lines(document), colour_wanted()));
}

int show_ledger_answer(const json& answer, bool as_json) {
    show(answer, as_json, ledger_lines);
    return at(answer, {"ledger", "closed"}) == false ? exit_status::has_problems : 0;
}

}  // namespace

int start_run(ControlClient& client, json parameters, bool as_json) {
    double tick_ps = 0;  // 0: times in ticks
    const std::string start = start_text(parameters);
    if (in_seconds(parameters)) {
        const json tick = at(client.call("status"), {"common", "tick_ps"});
        if (!tick.is_number() || !(tick > 0))
            throw config::Error(
                "--from-s, --to-s: the daemon does not tell its tick; expected times in ticks");
        tick_ps = tick.get<double>();
        replace_seconds(parameters, tick_ps);
    }
    const std::string note = gammas_note(parameters, client.call("status"));
    try {
        json result = client.call("start", parameters);
        if (as_json) {
            if (!note.empty()) result["note"] = note;
            print_json(result);
            return 0;
        }
        print(fmt::format("run {} {}\n", text_of(at(result, {"run"})),
                          start.empty() ? "started" : "waits for its start at " + start));
        if (!note.empty()) print(printable(note) + "\n");
    } catch (const daemon::RpcError& error) {
        if (tick_ps == 0) throw;
        // The daemon speaks of ticks.
        throw daemon::RpcError(
            error.code(),
            fmt::format("{}; detector time is now {}", refusal_in_seconds(error.what(), tick_ps),
                        with_unit(at(client.call("status"), {"watermark_s"}), "{:.3f}", " s")));
    }
    return 0;
}

int stop_run(ControlClient& client, const json& parameters, bool as_json) {
    const json result = client.call("stop", parameters, ControlClient::for_ever);
    const auto problems = stop_problems(result);
    if (as_json) {
        print_json(result);
    } else {
        print(stop_line(result) + "\n");
    }
    for (const std::string& problem : problems)
        config::print_warning("petctl", printable(problem));
    return problems.empty() ? exit_status::ok : exit_status::has_problems;
}

Lines status_text(const json& status, Form form) {
    const Display display{output_width(), unicode_wanted()};
    return form == Form::full ? status_lines(status, display) : status_summary(status, display);
}

int show_status(ControlClient& client, Form form) {
    const json status = client.call("status");
    if (form == Form::document) {
        print_json(status);
    } else {
        print(joined(status_text(status, form), colour_wanted()));
    }
    return 0;
}

int show_sources(ControlClient& client, bool list_only) {
    const json status = client.call("status");
    const json heard = sources_heard(status);
    if (!list_only) {
        print(joined(sources_lines(status), colour_wanted()));
        print("\nAs \"sources\" of a scanner description:\n");
    }
    print(list_text(heard));
    if (list_only) return 0;
    const auto silent = not_heard(status, heard);
    if (!silent.empty())
        print(fmt::format("\nConfigured but silent, and not in this list: {}\n", fmt::join(silent, ", ")));
    return 0;
}

int show_ledger(ControlClient& client, const std::optional<std::string>& run, bool as_json) {
    json parameters = json::object();
    if (run) parameters["run"] = *run;
    return show_ledger_answer(client.call("ledger", parameters), as_json);
}

int show_ledger_of_file(const std::string& path, bool as_json) {
    std::error_code ignored;
    std::filesystem::path file(path);
    if (std::filesystem::is_directory(file, ignored)) file /= "run.json";
    json content;
    try {
        content = config::read_json_file(file, config::max_run_json_bytes);
    } catch (const config::Error& error) {
        throw OutputError(error.what());
    }
    const json& ledger = at(content, {"ledger"});
    if (!ledger.is_object()) throw OutputError(file.string() + ": not a run.json with a ledger");
    return show_ledger_answer(
        {{"run", at(content, {"run_id"})}, {"state", at(content, {"state"})}, {"ledger", ledger}}, as_json);
}

int show_runs(ControlClient& client, std::optional<std::size_t> last, bool as_json) {
    RunList list(last);
    while (const auto parameters = list.next())
        list.add(client.call("runs", *parameters));
    const json document = list.document();
    if (as_json) {
        print_json(document);
    } else {
        print(document["runs"].empty() ? "no runs\n" : joined(runs_lines(document["runs"]), colour_wanted()));
    }
    return 0;
}

int show_history(ControlClient& client, const json& parameters, bool as_json) {
    show(client.call("history", parameters), as_json, history_lines);
    return 0;
}

int acknowledge_runs(ControlClient& client, const std::vector<std::string>& runs, bool as_json) {
    for (const std::string& run : runs) {
        client.call("acknowledge", {{"run", run}});
        if (!as_json) print(fmt::format("run {} acknowledged as interrupted\n", run));
    }
    if (as_json) print_json({{"acknowledged", runs}});
    return 0;
}

int mark_run(ControlClient& client, const std::string& text, bool as_json) {
    const json result = client.call("mark", {{"text", text}});
    if (as_json) {
        print_json(result);
        return 0;
    }
    print(mark_text(result));
    return 0;
}

int reload(ControlClient& client, bool as_json) {
    const json result = client.call("reload");
    if (as_json) {
        print_json(result);
        return 0;
    }
    const auto list = [&](const char* key, const char* text) {
        for (const json& name : at(result, {key}))
            print(fmt::format("{} {}\n", printable(text_of(name)), text));
    };
    list("changed", "has changed");
    list("needs_restart", "has changed in the file and needs a restart");
    const auto show = [](const char* label, const json& calibration) {
        print(fmt::format("{}: {} (SHA-256 {})\n", label, printable(text_of(at(calibration, {"file"}))),
                          printable(text_of(at(calibration, {"sha256"})))));
    };
    const json& calibration = at(result, {"calibration"});
    show("calibration in use", calibration);
    if (const json& next = at(calibration, {"next"}); next.is_object())
        show("calibration after the run", next);
    return 0;
}

int log_level(ControlClient& client, const std::string& level, bool as_json) {
    const json result = client.call("log_level", level.empty() ? json::object() : json{{"level", level}});
    if (as_json) {
        print_json(result);
    } else {
        print(text_of(at(result, {"level"})) + "\n");
    }
    return 0;
}

}  // namespace petacq::petctl
