// Who sends commands to the daemon, over its control socket.
#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/preload/record.hpp"
#include "tests/simulation/preload/scheduler.hpp"

namespace petacq::simulation {

class Operator {
  public:
    Operator(Scheduler& scheduler, Record& record, std::string socket)
        : scheduler_(scheduler), record_(record), socket_(std::move(socket)) {}

    /// Sends a line without waiting for the answer to the last one. Without a connection it is not sent.
    void send(const std::string& line);
    /// Connects if the daemon listens, and reads answers.
    void look();

  private:
    Scheduler& scheduler_;
    Record& record_;
    std::string socket_;
    int connection_ = -1;
    std::string received_;
};

}  // namespace petacq::simulation
