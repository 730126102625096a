#include "config/base/answer.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "config/base/colour.hpp"
#include "config/base/error.hpp"
#include "config/base/printable.hpp"

namespace petacq::config {

namespace {

void write(std::ostream& stream, std::FILE* file, std::string_view text, const char* colour) {
    const std::string harmless = printable(text, "\n\t");
    if (*colour == '\0' || !colour_wanted(::fileno(file))) {
        stream << harmless;
        return;
    }
    const std::size_t end = harmless.find_last_not_of('\n') + 1;
    stream.flush();
    // Not by the stream: PrintableOutput escapes colours, too.
    std::fputs((coloured(harmless.substr(0, end), colour, true) + harmless.substr(end)).c_str(), file);
}

void complain(std::string_view program, std::string_view text, const char* colour) {
    write(std::cerr, stderr, std::string(program) + ": " + std::string(text) + '\n', colour);
}

}  // namespace

void print_coloured(std::string_view text, const char* colour) {
    write(std::cout, stdout, text, colour);
}

void print_warning(std::string_view program, std::string_view text) {
    complain(program, text, colour::warning);
}

void print_error(std::string_view program, std::string_view text) {
    complain(program, text, colour::bad);
}

void flush_output() {
    errno = 0;
    if ((!std::cout.flush() || std::fflush(stdout) != 0) && errno != EPIPE)
        throw IoError("standard output: cannot be written");
}

void print_answer(const nlohmann::json& facts, const std::string& text, bool as_json) {
    if (as_json) {
        std::cout << facts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
        std::cout << text;
    }
    flush_output();
}

void print_written(Written written, bool as_json, std::string_view program) {
    for (const std::string& warning : written.warnings)
        print_warning(program, warning);
    nlohmann::json& files = written.facts["files"] = nlohmann::json::array();
    for (const std::filesystem::path& file : written.files)
        files.push_back(file.string());
    nlohmann::json& warnings = written.facts["warnings"] = std::move(written.printed);
    for (std::string& warning : written.warnings)
        warnings.push_back(std::move(warning));
    print_answer(written.facts, written.text, as_json);
}

}  // namespace petacq::config
