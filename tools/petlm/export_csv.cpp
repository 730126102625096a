// CSV: the lines of petlm dump. docs/formats/csv.md.
#include <array>

#include "tools/petlm/csv.hpp"
#include "tools/petlm/export.hpp"
#include "tools/petlm/in_order.hpp"

namespace petacq::petlm {
namespace {

template <class Record>
std::string lines_of(const std::vector<Record>& records) {
    constexpr std::size_t usual_line = 56;
    std::string text;
    text.reserve(records.size() * usual_line);
    std::array<char, longest_csv_line> line{};
    for (const auto& record : records)
        text.append(line.data(), csv_line(line.data(), record));
    return text;
}

}  // namespace

Exported export_csv(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs) {
    outputs.claim(options.output);
    OutputFile out(options.output);
    out.text(csv_header(source.kind()));
    // Numbers take longer to become text than text takes to be written: the cores share that.
    InOrder<std::string> texts([&](const std::string& text) { out.text(text); });
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        const auto give_out = [&](auto records) {
            texts.add([copy = std::vector(records.begin(), records.end())] { return lines_of(copy); });
        };
        if (reader.kind() == daemon::RecordKind::singles) {
            give_out(reader.singles());
            exported.singles += reader.singles().size();
            return;
        }
        give_out(reader.coincidences());
        for (const auto& c : reader.coincidences())
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
    });
    texts.finish();
    out.close();
    exported.files = {options.output.filename().string() + ": one line of names, then one per record"};
    exported.notes = {"Times are ticks of detector time, energies keV."};
    if (source.kind() == daemon::RecordKind::coincidences) {
        exported.notes.push_back("dt is the time from crystal_a to crystal_b; of a delayed, less the delay.");
    }
    return exported;
}

}  // namespace petacq::petlm
