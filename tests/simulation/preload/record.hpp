// Writes down the events outside the daemon. The checks read them after the simulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace petacq::simulation {

/// Two files, each appended to by all lives of the daemon:
///   events    lines: `LIFE TIME_NS WHAT TEXT`
///   arrived   datagrams that reached the sockets: u32 life, u32 bytes, i64 time in ns, then the bytes
class Record {
  public:
    Record(const std::string& directory, std::uint32_t life);

    void event(std::int64_t at_ns, std::string_view what, std::string_view text = {});
    void arrived(std::int64_t at_ns, std::span<const std::byte> datagram);
    void flush();

  private:
    struct Output {
        int descriptor = -1;
        std::string waiting;
        void add(const void* data, std::size_t size);
        void flush();
    };
    std::uint32_t life_;
    Output events_;
    Output arrived_;
};

}  // namespace petacq::simulation
