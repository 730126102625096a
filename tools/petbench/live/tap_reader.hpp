// A client of the live tap that reads as fast as it can, and looks at nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <thread>

namespace petacq::bench {

/// Reads from the constructor on until the tap ends.
class TapReader {
  public:
    /// Asks for every `prescale`-th coincidence. Throws std::runtime_error if nobody listens there.
    TapReader(const std::filesystem::path& socket, std::uint64_t prescale);
    TapReader(const TapReader&) = delete;
    TapReader& operator=(const TapReader&) = delete;
    /// Ends the connection.
    ~TapReader();

  private:
    int descriptor_;
    std::thread thread_;
};

}  // namespace petacq::bench
