// petlm: looks at list-mode files.
#include <CLI/CLI.hpp>

#include <csignal>
#include <iostream>
#include <map>
#include <system_error>

#include "config/error.hpp"
#include "daemon/listmode_reader.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/export_source.hpp"

namespace {

using petacq::gpu::Kind;

int run(int argc, char** argv) {
    CLI::App app{"petlm: looks at list-mode files (.plm)"};
    app.require_subcommand(1);
    app.footer(
        "Exit status: 0 fine, 1 the file has problems, 64 usage, 65 not a list-mode file, 74 I/O failure, 78 "
        "unusable scanner description.");
    int status = 0;

    std::filesystem::path target;
    bool as_json = false;
    auto* info = app.add_subcommand("info", "What a file or the files of a run hold");
    info->add_option("target", target, "File or run directory")->required();
    info->add_flag("--json", as_json, "As JSON");
    info->callback([&] { status = petacq::petlm::info(target, as_json); });

    Kind kind = Kind::prompt;
    std::uint64_t limit = 0;
    auto* dump = app.add_subcommand("dump", "The records as CSV");
    dump->add_option("file", target, "File, or run directory: its coincidences")->required();
    auto* kind_option = dump->add_option("--kind", kind, "Only prompt or only delayed coincidences");
    kind_option->transform(CLI::CheckedTransformer(
        std::map<std::string, Kind>{{"prompt", Kind::prompt}, {"delayed", Kind::delayed}}));
    auto* limit_option =
        dump->add_option("--limit", limit, "At most so many records")->check(CLI::NonNegativeNumber);
    dump->callback([&] {
        status = petacq::petlm::dump(target, kind_option->count() != 0 ? std::optional(kind) : std::nullopt,
                                     limit_option->count() != 0 ? std::optional(limit) : std::nullopt);
    });

    std::vector<std::filesystem::path> targets;
    auto* verify =
        app.add_subcommand("verify", "Checks every block, the order of the records and the counts");
    verify->add_option("targets", targets, "Files or run directories")->required();
    verify->callback([&] { status = petacq::petlm::verify(targets); });

    std::filesystem::path output;
    auto* recover = app.add_subcommand("recover", "Copies every whole block of a broken file to a sound one");
    recover->add_option("file", target, "File")->required();
    recover->add_option("--output,-o", output, "File to write; default: FILE with .recovered.plm for .plm");
    recover->callback([&] { status = petacq::petlm::recover(target, output); });

    petacq::petlm::ExportOptions to;
    auto* exporting = app.add_subcommand("export", "The records for other software");
    exporting->add_option("--format", to.format, "castor, stir, coinstruct, csv or hdf5")->required();
    exporting->add_option("target", to.target, "File, or run directory: its coincidences")->required();
    exporting->add_option("--output,-o", to.output, "Directory to write to (castor, stir), or file")
        ->required();
    exporting->add_flag("--force", to.force, "Replace an earlier export");
    exporting->add_option("--scanner", to.scanner,
                          "Scanner description; default: that in the run's run.json (castor, stir)");
    exporting->add_option("--tof-resolution-ps", to.tof_resolution_ps,
                          "Write TOF; FWHM of the time difference (castor)");
    exporting->add_flag("--kind", to.event_kind, "Write the kind of each event (castor)");
    exporting->add_option("--depth-mm", to.depth_mm,
                          "Mean depth of interaction behind the front face; default: half a crystal "
                          "(castor, stir)");
    exporting->add_flag("--time-from-start", to.time_from_start,
                        "Ticks from the start of the run (coinstruct)");
    exporting->callback([&] { status = petacq::petlm::export_records(to); });

    petacq::petlm::ImportOptions from;
    auto* importing = app.add_subcommand("import", "A list-mode file of other software's pairs");
    importing->add_option("--format", from.format, "coinstruct")->required();
    importing->add_option("pairs", from.pairs, "File of prompts")->required();
    importing->add_option("--delayeds", from.delayeds, "File of delayeds");
    importing->add_option("--scanner", from.scanner, "Scanner description")->required();
    importing->add_option("--output,-o", from.output, "List-mode file to write")->required();
    importing->add_flag("--force", from.force, "Replace it");
    importing->callback([&] { status = petacq::petlm::import_pairs(from); });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : petacq::petlm::usage;
    }
    return status;
}

int failed(const std::exception& error, int status) {
    std::cerr << "petlm: " << error.what() << '\n';
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return run(argc, argv);
    } catch (const petacq::petlm::UsageError& error) {
        return failed(error, petacq::petlm::usage);
    } catch (const petacq::daemon::NotListMode& error) {
        return failed(error, petacq::petlm::not_list_mode);
    } catch (const petacq::petlm::BadInput& error) {
        return failed(error, petacq::petlm::has_problems);
    } catch (const petacq::config::IoError& error) {
        return failed(error, petacq::petlm::io_failure);
    } catch (const petacq::config::Error& error) {
        return failed(error, petacq::petlm::bad_scanner);
    } catch (const std::system_error& error) {
        return failed(error, petacq::petlm::io_failure);
    } catch (const std::exception& error) {
        return failed(error, petacq::petlm::io_failure);
    }
}
