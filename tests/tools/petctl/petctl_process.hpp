// petctl as a real process, with its output in files or on a pseudo-terminal, and documents for it to show.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/daemon/control/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petctl/pseudo_terminal.hpp"

namespace petacq::test {

class Petctl {
  public:
    /// `terminal`: the path of a pseudo-terminal, which becomes its controlling terminal.
    explicit Petctl(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {}, const std::string& terminal = "");

    /// Its exit status, or minus the signal that killed it.
    int wait() { return process_.wait(); }
    /// The same on a terminal, which it reads meanwhile: an exiting program waits until its output is read.
    int wait(PseudoTerminal& terminal);
    void kill(int signal) const { process_.signal(signal); }
    [[nodiscard]] std::string output() const { return process_.output(); }
    [[nodiscard]] std::string errors() const { return process_.errors(); }

  private:
    TemporaryDirectory directory_;
    Process process_;
};

/// A status document with something in every field that petctl shows.
nlohmann::json full_status();

}  // namespace petacq::test
