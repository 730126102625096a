// Layouts of foreign frames, and datagrams that they describe.
// Input: a layout, a NUL, and datagrams, each after its length (two bytes).
#include "config/layout/layout.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "net/foreign/translator.hpp"
#include "tests/fuzz/base/json_target.hpp"

using namespace petacq;
using fuzz::require;

std::string_view fuzz::schema_of_target() {
    return config::layout_schema_text();
}

namespace {

/// Frames of a version have at most this many modules, units and positions.
net::FrameCheck frame_check(net::FrameVersion version) {
    net::FrameCheck frames{};
    frames.version = version;
    frames.bdm_count = config::max_bdm_count(version);
    return frames;
}

class Board {
  public:
    Board(const config::Layout& layout, const net::FrameCheck& frames)
        : frames_(frames),
          format_(std::make_shared<net::ForeignFormat>(layout, frames, 15.625)),
          translator_(format_) {}

    void take(std::span<const std::uint8_t> payload) {
        // Where datagrams are read a few bytes behind them can be read.
        std::vector<std::byte> bytes(payload.size() + net::foreign_slack_bytes);
        std::memcpy(bytes.data(), payload.data(), payload.size());
        net::DatagramHeader header;
        std::size_t frames = 0;
        if (translator_.parse(bytes.data(), payload.size(), header, frames) != net::Malformed::none) return;
        require(frames <= net::max_foreign_frames &&
                    frames * net::frame_bytes <= translator_.max_bytes(payload.size()),
                "a datagram becomes one of petacqd");
        std::vector<std::byte> out(frames * net::frame_bytes);
        arrival_ns_ += 1'000'000;
        (void)translator_.translate(bytes.data(), payload.size(), {0x7F000001, 7}, arrival_ns_, header,
                                    out.data());
        for (std::size_t i = 0; i < frames; ++i) {
            const net::Frame frame = net::decode_frame(out.data() + i * net::frame_bytes, frames_.version);
            std::byte again[net::frame_bytes];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
            net::encode_frame(frame, again, frames_.version);
            require(std::memcmp(again, out.data() + i * net::frame_bytes, sizeof again) == 0,
                    "what is translated is a frame of petacqd");
        }
    }

  private:
    net::FrameCheck frames_;
    std::shared_ptr<net::ForeignFormat> format_;
    net::Translator translator_;
    std::int64_t arrival_ns_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto [text, bytes] = fuzz::text_and_rest(data, size);
    nlohmann::json document;
    try {
        document = config::parse_json(text);
    } catch (const config::Error&) {
        return -1;
    }
    const fuzz::MemoryBound bound((std::size_t{64} << 20) + 2000 * size);
    const net::FrameCheck frames =
        frame_check(size % 2 == 0 ? net::FrameVersion::one : net::FrameVersion::two);
    try {
        const config::Layout layout = config::layout_from_json(document, frames.bdm_count);
        Board board(layout, frames);
        fuzz::accept();
        for (auto left = bytes; left.size() >= 2;) {
            const std::size_t length = std::min(left[0] + std::size_t{256} * left[1], left.size() - 2);
            board.take(left.subspan(2, length));
            left = left.subspan(2 + length);
        }
    } catch (const config::Error& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
    return 0;
}
