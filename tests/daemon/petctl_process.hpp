// petctl as a real process, with its output in files or on a pseudo-terminal; and answers to show.
#pragma once

#include <termios.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/daemon/control_fixture.hpp"

namespace petacq::test {

std::string contents(const std::filesystem::path& file);
bool contains(const std::string& text, const std::string& part);

class Petctl {
  public:
    /// `terminal`: the path of a pseudo-terminal, which becomes its controlling terminal.
    explicit Petctl(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
                    const std::string& terminal = "");
    Petctl(const Petctl&) = delete;
    Petctl& operator=(const Petctl&) = delete;
    ~Petctl();

    /// Its exit status; minus the signal that ended it.
    int wait();
    void kill(int signal) const;
    [[nodiscard]] std::string output() const { return contents(directory_.path() / "out"); }
    [[nodiscard]] std::string errors() const { return contents(directory_.path() / "err"); }

  private:
    TemporaryDirectory directory_;
    pid_t process_ = -1;
};

/// A pseudo-terminal of 80 columns and 24 rows; good() is false where there are none.
class PseudoTerminal {
  public:
    PseudoTerminal();
    PseudoTerminal(const PseudoTerminal&) = delete;
    PseudoTerminal& operator=(const PseudoTerminal&) = delete;
    ~PseudoTerminal();

    [[nodiscard]] bool good() const { return main_ >= 0; }
    [[nodiscard]] const std::string& name() const { return name_; }
    void resize(unsigned short columns, unsigned short rows) const;
    void type(const std::string& keys) const;
    /// Reads until the text stands in what came since the last call; false when it does not come. What came
    /// stays in seen().
    bool shows(const std::string& text);
    [[nodiscard]] const std::string& seen() const { return seen_; }
    /// Whether the modes of the terminal are those it was made with.
    [[nodiscard]] bool as_it_was() const;

  private:
    int main_ = -1;
    int other_ = -1;  ///< held open, so that nothing is hung up between programs
    std::string name_;
    std::string seen_;
    termios modes_{};
};

/// A status document with something in every field that petctl shows.
nlohmann::json full_status();

}  // namespace petacq::test
