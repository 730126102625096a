// Datagrams as text: the header, and each frame with its bytes and its fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/endpoint.hpp"
#include "tools/petctl/frames/board_format.hpp"

namespace petacq::petctl {

/// A datagram, or the beginning of one.
struct SeenDatagram {
    net::Endpoint from;
    std::int64_t arrival_ns = 0;
    std::size_t bytes = 0;            ///< of the whole datagram
    std::span<const std::byte> head;  ///< how it begins, as it was sent
    /// With a layout: what petacqd made of it, as a sequenced datagram of its own format; empty: nothing.
    std::span<const std::byte> translated;
    bool is_own = false;  ///< of petacqd's own format, whatever the layout: captures of petacqd hold such
};

/// Of which datagrams, and how many.
struct DumpOptions {
    std::size_t count = 0;       ///< most frames, and most datagrams
    std::optional<unsigned> id;  ///< of this source only
    std::uint32_t address = 0;   ///< from this address only; 0: any
    std::uint16_t port = 0;      ///< and from this port; 0: any
    bool as_json = false;        ///< a line of JSON for each datagram
};

/// One thread.
class Dump {
  public:
    /// `translates`: datagrams of the layout are whole, and are translated here. Throws config::Error.
    Dump(const BoardFormat& format, const DumpOptions& options, bool translates = false);

    /// The lines of the datagram, or its object; "" if it is not asked for.
    std::string add(const SeenDatagram& datagram);
    [[nodiscard]] bool full() const { return frames_ >= options_.count || datagrams_ >= options_.count; }
    [[nodiscard]] std::size_t datagrams() const { return datagrams_; }

  private:
    struct Content {
        net::Malformed malformed = net::Malformed::none;
        bool untranslated = false;                  ///< the daemon has not translated it
        std::optional<net::DatagramHeader> header;  ///< sequenced framing
        std::size_t total = 0;                      ///< frames of the datagram; 0 also if it is not known
        std::span<const std::byte> frames;          ///< those that are known
    };

    [[nodiscard]] Content own_content(std::span<const std::byte> head, std::size_t bytes) const;
    Content translated_content(const SeenDatagram& datagram);
    Content content_of(const SeenDatagram& datagram);
    [[nodiscard]] bool asked_for(const SeenDatagram& datagram, const Content& content) const;
    [[nodiscard]] std::string head_line(const SeenDatagram& datagram, const Content& content,
                                        const BoardFormat::KnownBoard* source) const;
    [[nodiscard]] nlohmann::json head_json(const SeenDatagram& datagram, const Content& content,
                                           const BoardFormat::KnownBoard* source) const;
    [[nodiscard]] std::string frame_line(std::size_t number, const std::byte* frame,
                                         const net::Modules& modules, bool own) const;
    [[nodiscard]] nlohmann::json frame_json(std::size_t number, const std::byte* frame,
                                            const net::Modules& modules, bool own) const;
    /// "" if petacqd takes the frame.
    [[nodiscard]] std::string fault_of(const std::byte* frame, const net::Modules& modules, bool own) const;

    const BoardFormat& format_;
    const DumpOptions options_;
    std::optional<net::Translator> translator_;
    std::vector<std::byte> sent_;        // the datagram that is being translated
    std::vector<std::byte> translated_;  // its frames
    std::size_t frames_ = 0;
    std::size_t datagrams_ = 0;
};

/// Why petacqd rejects a frame of a source with these modules; "" if it does not.
std::string why_invalid(const net::FrameCheck& check, const net::Modules& modules, const std::byte* frame);

}  // namespace petacq::petctl
