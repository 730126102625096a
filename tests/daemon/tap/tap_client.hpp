// A client of the live tap, written from docs/reference/tap.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace petacq::test {

struct TapMessageRead {
    std::uint32_t type = 0;  ///< 1: run started, 2: records, 3: run ended
    std::uint64_t run = 0;
    std::uint64_t first_record = 0;
    std::uint64_t records = 0;
    std::uint64_t first_time = 0;
    std::uint64_t last_time = 0;
    std::uint64_t dropped = 0;
    std::string payload;
};

class TapClientForTest {
  public:
    /// Throws std::runtime_error if nobody listens there.
    explicit TapClientForTest(const std::filesystem::path& socket);
    TapClientForTest(const TapClientForTest&) = delete;
    TapClientForTest& operator=(const TapClientForTest&) = delete;
    ~TapClientForTest();

    void send(const std::string& bytes) const;
    void finish_sending() const;
    /// Sends a request and returns the answer.
    nlohmann::json ask(const nlohmann::json& request);
    /// The next line. Throws std::runtime_error if there is none.
    nlohmann::json answer();
    /// The next message; nothing if the connection ends before it.
    std::optional<TapMessageRead> next();
    /// All payload of the records of the next run, until it ends.
    std::string records_of_run();
    /// Whether the other end has closed, and nothing is left.
    bool at_end();

  private:
    std::size_t read(char* to, std::size_t bytes) const;
    int descriptor_;
};

}  // namespace petacq::test
