// petctl as a real process, with its output in files or on a pseudo-terminal; and answers to show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/daemon/control_fixture.hpp"
#include "tests/daemon/pseudo_terminal.hpp"

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
    /// The same on a terminal, which must be read meanwhile: who leaves waits until all is shown.
    int wait(PseudoTerminal& terminal);
    void kill(int signal) const;
    [[nodiscard]] std::string output() const { return contents(directory_.path() / "out"); }
    [[nodiscard]] std::string errors() const { return contents(directory_.path() / "err"); }

  private:
    TemporaryDirectory directory_;
    pid_t process_ = -1;
};

/// A status document with something in every field that petctl shows.
nlohmann::json full_status();

}  // namespace petacq::test
