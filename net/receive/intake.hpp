// From the socket into batches: the hot path of the receiver. Internal to net/.
//
// One recvmmsg takes several messages. Message i goes to the slot at data + used + i * stride of the current
// batch; the part of a message beyond the stride goes to an overflow area. The stride follows the largest
// recent message. Steady traffic of any size, with or without GRO, is therefore stored back to back and never
// copied. The rare longer message is joined by a copy. A call that would leave more holes than data is
// packed. Long messages whose sizes vary come one per call, with room for any size, and leave no holes.
//
// Messages of a foreign format go to the overflow areas as a whole, and are translated from there into the
// batch.
//
// Without a free batch nothing is read: datagrams wait in the socket buffer, unless they are to be dropped in
// an overload (overload_gate.hpp). If the last batch is full in the
// middle of a call, the rest of its messages move to the overflow areas until a batch comes back.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <ctime>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "net/batch_queue.hpp"
#include "net/receive/receiver.hpp"
#include "net/receive/samples.hpp"
#include "net/receive/splitter.hpp"

namespace petacq::net {

/// Facts about a message, from its control messages; recvmmsg reports the sender separately.
struct MessageFacts {
    std::size_t segment = 0;  ///< size of its datagrams if the kernel coalesced several, else of the message
    std::int64_t realtime_ns = 0;  ///< when the kernel received it; 0: not known
};
MessageFacts facts_of(msghdr& header, std::size_t size);

/// Room for the control messages that facts_of() reads.
struct alignas(cmsghdr) ReceiveControl {
    std::array<std::byte, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(timespec))> bytes;
};

/// One thread at a time.
class Intake {
  public:
    struct Taken {
        unsigned messages = 0;  ///< with GRO a message may hold several datagrams
        std::size_t bytes = 0;
        bool more = false;         ///< there may be more
        bool needs_batch = false;  ///< nothing was taken, because no batch is free
    };
    /// While no batch is free, the datagrams wait, or are counted and dropped.
    enum class WithoutBatch : std::uint8_t { wait, drop };

    /// `fd` is a bound UDP socket, `local` its address. Throws std::invalid_argument if a batch is smaller
    /// than the largest datagram.
    Intake(int fd, Endpoint local, const ReceiverOptions& options, BatchPool& pool, BatchLane& output,
           ReceiverCounters& counters, OverloadGate* gate);
    ~Intake();
    Intake(const Intake&) = delete;
    Intake& operator=(const Intake&) = delete;

    /// Takes queued messages with one recvmmsg, and publishes them. Never blocks.
    Taken receive(WithoutBatch without = WithoutBatch::wait);
    /// Waits for a free batch. Returns false if there is none after `timeout`.
    bool wait_for_batch(std::chrono::microseconds timeout) { return pool_.wait(own_, timeout); }
    /// Messages have been read that wait for a batch.
    [[nodiscard]] bool holds_messages() const { return next_ != call_count_; }
    /// Finishes the current batch. An empty one goes back to the pool.
    void pass_on();
    [[nodiscard]] UnknownSenders& unknown_senders() { return splitter_.unknown_senders(); }
    [[nodiscard]] Samples& samples() { return samples_; }

  private:
    static constexpr unsigned max_messages = 64;  // of one recvmmsg

    Endpoint sender_of(unsigned i);
    unsigned read();
    void copy_of(unsigned i, std::size_t from, std::span<std::byte> to) const;
    void take_sample();
    void take_next(unsigned first);
    void add_translated_sample(const Datagram& d);
    unsigned prepare_slots();
    void watch_overload();
    void drop(unsigned i, const Splitter::Message& m);
    bool process(unsigned i, WithoutBatch without);
    bool translate(const Splitter::Message& m, WithoutBatch without);
    std::byte* join(unsigned i);
    void set_rest_aside();
    std::byte* find_room(unsigned i, std::size_t size, std::size_t segments);
    void finish_call();
    void finish(Batch* batch);
    Batch* take_batch();
    std::int64_t arrival_of(std::int64_t realtime_ns);
    [[nodiscard]] bool has_records(std::size_t count) const;
    [[nodiscard]] std::byte* overflow(unsigned i) const;

    int fd_;
    BatchPool& pool_;
    Batch* const own_;  // set aside for this receiver
    BatchLane& output_;
    ReceiverCounters& counters_;
    OverloadGate* const gate_;
    Splitter splitter_;
    Samples samples_;
    Endpoint local_;
    // The number of the latest IPv6 sender of each slot of a hash; most senders are found there.
    struct Numbered {
        in6_addr address{};
        std::uint32_t number = 0;  // 0: none
    };
    std::array<Numbered, 256> numbered_{};

    std::array<mmsghdr, max_messages> headers_{};
    std::array<iovec, 2 * std::size_t{max_messages}> pieces_{};
    std::array<sockaddr_in6, max_messages> senders_{};  // of either family
    std::array<ReceiveControl, max_messages> controls_{};
    // One area per message.
    std::unique_ptr<std::byte[]> overflow_;

    Batch* batch_ = nullptr;             // being filled
    std::size_t stride_;                 // of the next call
    std::size_t segments_ = 1;           // most datagrams in one message of the last call
    std::int64_t arrival_ns_ = 0;        // of the latest message
    std::int64_t read_ns_ = 0;           // steady clock of the present call
    std::int64_t steady_less_real_ = 0;  // at that time, ns
    // State of one call of recvmmsg: the batch with the slots, their geometry, and the batches that became
    // full.
    Batch* slots_batch_ = nullptr;
    std::byte* slots_ = nullptr;
    std::size_t call_stride_ = 0;
    unsigned call_count_ = 0;
    unsigned next_ = 0;           // the message to be processed next
    unsigned sampled_ = 0;        // the message of which a sample was taken; max_messages: none
    std::size_t translated_ = 0;  // bytes of it that have been translated
    bool more_ = false;           // the socket may hold more
    std::int64_t call_ns_ = 0;    // steady clock before the call
    std::size_t packed_ = 0;      // offset of the next message if the call is packed
    std::size_t tail_ = 0;        // offset behind all slots, where long messages are joined
    bool packing_ = false;
    unsigned steady_ = 0;  // messages in a row that were as long as the stride
    std::size_t full_count_ = 0;
    std::array<Batch*, max_messages> full_{};
};

}  // namespace petacq::net
