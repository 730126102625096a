// CSV: the lines of petlm dump. docs/formats/csv.md.
#include "tools/petlm/csv.hpp"
#include "tools/petlm/export.hpp"

namespace petacq::petlm {

Exported export_csv(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs) {
    outputs.claim(options.output);
    OutputFile out(options.output);
    out.text(csv_header(source.kind()));
    const auto line = [&](const auto& record) {
        char* at = out.room(longest_csv_line);
        out.wrote(static_cast<std::size_t>(csv_line(at, record) - at));
    };
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        if (reader.kind() == daemon::RecordKind::singles) {
            for (const auto& single : reader.singles())
                line(single);
            exported.singles += reader.singles().size();
            return;
        }
        for (const auto& c : reader.coincidences()) {
            line(c);
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
        }
    });
    out.close();
    exported.files = {options.output.filename().string() + ": one line of names, then one per record"};
    exported.notes = {"Times are ticks of detector time, energies keV."};
    if (source.kind() == daemon::RecordKind::coincidences) {
        exported.notes.push_back("dt is the time from crystal_a to crystal_b; of a delayed, less the delay.");
    }
    return exported;
}

}  // namespace petacq::petlm
