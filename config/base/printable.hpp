// Text from outside (files, names, the network), made harmless for a terminal or a log.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace petacq::config {

/// The text with everything escaped that a terminal acts upon or that changes how the text around it reads:
/// control characters, marks of the direction of writing, line separators and invisible marks as \u202e (as
/// in JSON), bytes that are not UTF-8 as \xff. Characters of `kept`, such as "\n", stay.
std::string printable(std::string_view text, std::string_view kept = "");

/// While it exists, what a program writes to std::cout and std::cerr is printable, apart from line breaks and
/// tabs. One per process, in main().
class PrintableOutput {
  public:
    PrintableOutput();
    PrintableOutput(const PrintableOutput&) = delete;
    PrintableOutput& operator=(const PrintableOutput&) = delete;
    ~PrintableOutput();

  private:
    class Filter;
    std::unique_ptr<Filter> out_;
    std::unique_ptr<Filter> errors_;
};

}  // namespace petacq::config
