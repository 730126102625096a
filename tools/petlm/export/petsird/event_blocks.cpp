#include "tools/petlm/export/petsird/event_blocks.hpp"

#include <algorithm>
#include <deque>
#include <future>
#include <string_view>
#include <thread>
#include <utility>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::petsird {
namespace {

/// Writes the table of lists by the types of their photons.
class TableWriter {
  public:
    TableWriter(std::uint32_t types, bool triangular, const std::function<void(std::string_view)>& put)
        : types_(types), triangular_(triangular), put_(put) {}

    /// `lists`: those of which no type is higher than the one before it.
    void write(std::span<const EventList> lists, unsigned photons) {
        next_ = lists.data();
        level(photons, static_cast<std::int64_t>(types_) - 1);
    }

  private:
    /// `highest`: the last type of which there are events; below 0: of none.
    void level(unsigned photons, std::int64_t highest) {
        const std::int64_t size = triangular_ ? highest + 1 : std::int64_t{types_};
        number(static_cast<std::uint64_t>(size));
        for (std::int64_t type = 0; type < size; ++type) {
            if (photons > 1) {
                level(photons - 1, type <= highest ? type : -1);
            } else if (type <= highest) {
                const EventList& list = *next_++;
                number(list.events);
                put_({reinterpret_cast<const char*>(list.bytes.data()), list.used});
            } else {
                number(0);
            }
        }
    }
    void number(std::uint64_t value) { put_(Coded().number(value).bytes); }

    std::int64_t types_;
    bool triangular_;
    const std::function<void(std::string_view)>& put_;
    const EventList* next_ = nullptr;
};

template <class Record>
constexpr daemon::RecordKind kind_of =
    std::is_same_v<Record, gpu::Triple> ? daemon::RecordKind::triples : daemon::RecordKind::coincidences;

}  // namespace

void GatheredLists::add(const EventPart& part, std::size_t k) {
    for (std::size_t list = 0; list < lists_.size(); ++list) {
        const EventPart::End begin = k == 0 ? EventPart::End{} : part.ends[(k - 1) * lists_.size() + list];
        const EventPart::End end = part.ends[k * lists_.size() + list];
        EventList& to = lists_[list];
        const std::size_t bytes = end.bytes - begin.bytes;
        if (bytes == 0) continue;
        if (to.bytes.size() < to.used + bytes) to.bytes.resize(2 * (to.used + bytes));
        std::memcpy(to.bytes.data() + to.used, part.lists[list].bytes.data() + begin.bytes, bytes);
        to.used += bytes;
        to.events += end.events - begin.events;
    }
}

void GatheredLists::clear() {
    for (EventList& list : lists_)
        list.events = list.used = 0;
}

/// Reads records ahead, at most as many blocks as there are cores, so that memory stays bounded.
template <class Record>
class EventStream<Record>::Parts {
  public:
    Parts(const std::filesystem::path& target, const EventEncoder& encoder,
          std::function<void(std::uint64_t)> done)
        : source_(target, kind_of<Record>), encoder_(encoder), done_(std::move(done)) {}

    /// Absent at the end.
    std::optional<EventPart> next() {
        const std::size_t ahead = 1 + std::max(1U, std::thread::hardware_concurrency());
        while (!at_end_ && waiting_.size() < ahead) {
            if (!source_.next()) {
                at_end_ = true;
                break;
            }
            const auto records = petlm::records_of<Record>(source_.reader());
            done_(records.size());
            petlm::RecordCheck check{encoder_.crystals(), UINT64_MAX, last_};
            if (!records.empty()) last_ = time_of(records.back());
            waiting_.push_back(std::async(
                std::launch::async,
                [this, check, copy = std::vector(records.begin(), records.end()),
                 file = source_.reader().path(), first = source_.reader().block().first_record]() mutable {
                    check.all(std::span<const Record>(copy), file, first);
                    return encoder_.encode(std::span<const Record>(copy));
                }));
        }
        if (waiting_.empty()) return std::nullopt;
        EventPart part = waiting_.front().get();
        waiting_.pop_front();
        return part;
    }

  private:
    petlm::RecordSource source_;
    const EventEncoder& encoder_;
    std::function<void(std::uint64_t)> done_;
    bool at_end_ = false;
    std::uint64_t last_ = 0;  ///< time of the last record that was read
    std::deque<std::future<EventPart>> waiting_;
};

template <class Record>
EventStream<Record>::EventStream(const std::filesystem::path& target, const EventEncoder& encoder,
                                 std::size_t lists, std::function<void(std::uint64_t)> done)
    : parts_(std::make_unique<Parts>(target, encoder, std::move(done))), gathered_(lists) {}

template <class Record>
EventStream<Record>::~EventStream() = default;

template <class Record>
const std::vector<EventList>& EventStream<Record>::of(std::uint64_t block) {
    gathered_.clear();
    for (;;) {
        if (!part_ || next_ == part_->blocks.size()) {
            part_ = parts_->next();
            next_ = 0;
            if (!part_) return gathered_.lists();
            continue;
        }
        const std::uint64_t number = part_->blocks[next_];
        if (number > block) return gathered_.lists();
        if (number < block)
            throw petlm::BadInput("the records are not in the order of time; petlm verify names the problem");
        gathered_.add(*part_, next_++);
    }
}

void EventBlocks::write(BlockTime time, const Lists& pairs, const Lists& triples,
                        const std::function<void(std::string_view)>& put) const {
    Coded head;
    head.number(1).number(0);  // another item, of the first of the kinds of time blocks
    head.number(time.begin_ms).number(time.end_ms).number(0);
    put(head.bytes);
    TableWriter table(types_, triangular_, put);
    const std::span<const EventList> all(pairs);
    table.write(all.first(pair_lists_), 2);
    const std::string none = Coded().number(0).bytes;
    if (delayeds_) {
        table.write(all.subspan(pair_lists_), 2);
    } else {
        put(none);
    }
    if (triples_) {
        table.write(triples, 3);
    } else {
        put(none);
    }
    put(none);
}

template class EventStream<gpu::Coincidence>;
template class EventStream<gpu::Triple>;

}  // namespace petacq::petsird
